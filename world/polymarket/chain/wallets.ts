import { hashText, joinBytes, typedDataDigest } from '#world/venue-core/signature.ts'
import { type Address, chainId, contracts, type Hex } from './addresses.ts'
import type { SafeTransaction, WalletBatch, WalletCall } from './chain-terms.ts'
import { bytesOf, checksummed, domainSeparator, hash, hexOf, isSameAddress, word } from './encoding.ts'
import { recoverSigner } from './orders.ts'

/** What owners sign for their wallets. */

const callType = 'Call(address target,uint256 value,bytes data)'
const callTypeHash = hashText(callType)
const batchTypeHash = hashText(`Batch(address wallet,uint256 nonce,uint256 deadline,Call[] calls)${callType}`)

const batchDigest = ({ wallet, nonce, deadline, calls }: WalletBatch): Uint8Array => {
  const hashes = calls.map(({ target, value, data }) =>
    hash(callTypeHash, word(target), word(value), hash(bytesOf(data))),
  )
  const struct = hash(batchTypeHash, word(wallet), word(nonce), word(deadline), hash(...hashes))
  return typedDataDigest(domainSeparator('DepositWallet', '1', chainId, wallet), struct)
}

/** The signer of a batch; undefined when the signature is malformed. */
export const recoverBatch = (batch: WalletBatch, signature: Hex): Address | undefined =>
  recoverSigner(batchDigest(batch), signature)

const safeDomainType = hashText('EIP712Domain(uint256 chainId,address verifyingContract)')
const safeTransactionType = hashText(
  'SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)',
)

/** Without a refund of gas. */
export const safeTransactionDigest = (transaction: SafeTransaction): Uint8Array => {
  const { safe, to, value, data, operation, nonce } = transaction
  const refund = Array.from({ length: 5 }, () => word(0))
  const call = [word(to), word(value), hash(bytesOf(data)), word(operation)]
  const struct = hash(safeTransactionType, ...call, ...refund, word(nonce))
  return typedDataDigest(hash(safeDomainType, word(chainId), word(safe)), struct)
}

/** The signer, also where the hash was signed as a message (a v above 30). */
export const recoverSafeTransaction = (transaction: SafeTransaction, signature: Hex): Address | undefined => {
  const digest = safeTransactionDigest(transaction)
  const v = Number.parseInt(signature.slice(130), 16)
  if (!(v > 30)) return recoverSigner(digest, signature)
  const message = hash(Buffer.from('\u0019Ethereum Signed Message:\n32'), digest)
  return recoverSigner(message, `${signature.slice(0, 130)}${(v - 4).toString(16)}` as Hex)
}

const multiSendSelector = hashText('multiSend(bytes)').subarray(0, 4)
/** Operation, target, value and length of the data. */
const headBytes = 85
const callsMax = 1_000

/** The packed calls; undefined where one delegates or is cut off. */
const unpacked = (packed: Buffer): WalletCall[] | undefined => {
  const calls: WalletCall[] = []
  for (let at = 0; at < packed.length; ) {
    const head = packed.subarray(at, at + headBytes)
    if (head.length < headBytes || head[0] !== 0 || calls.length === callsMax) return undefined
    const size = Number(BigInt(hexOf(head.subarray(53, 85))))
    const data = packed.subarray(at + headBytes, at + headBytes + size)
    if (data.length < size) return undefined
    calls.push({
      target: checksummed(hexOf(head.subarray(1, 21))),
      value: BigInt(hexOf(head.subarray(21, 53))),
      data: hexOf(data),
    })
    at += headBytes + size
  }
  return calls
}

/** The calls inside `multiSend(bytes)`; undefined for other data. */
export const multiSendCalls = (data: Hex): WalletCall[] | undefined => {
  const content = Buffer.from(bytesOf(data))
  if (content.length < 68 || !content.subarray(0, 4).equals(multiSendSelector)) return undefined
  const size = Number(BigInt(hexOf(content.subarray(36, 68))))
  const packed = content.subarray(68, 68 + size)
  return packed.length === size ? unpacked(packed) : undefined
}

/** A proxy whose code ends with its owner. */
export const safeProxyCode = (owner: Address): Hex =>
  hexOf(
    joinBytes(
      bytesOf('0x363d3d373d3d3d363d73'),
      bytesOf(contracts.safeImplementation),
      bytesOf('0x5af43d82803e903d91602b57fd5bf3'),
      bytesOf(owner),
    ),
  )

export const isMultiSend = (target: Address): boolean => isSameAddress(target, contracts.multiSend)
