import { concat, hexToBytes, keccak256, numberToHex, pad, size, stringToHex } from 'viem/utils'
import type {
  OutcomeOrderAction,
  PredictionAction,
  SafeBatchAction,
  SignInAction,
  WalletBatchAction,
} from '#kernel/money/prediction-actions.ts'
import { chainId, type ExchangeName, exchanges, type Hex } from './contracts.ts'
import { safeTransactionOf } from './multi-send.ts'

/**
 * The EIP-712 digests of everything that a user's key signs for the venue.
 * https://docs.polymarket.com/trading/orders/create
 */

/** The numbers of the venue for the kinds of wallets. */
export const signatureTypes = { eoa: 0, safe: 2, deposit_wallet: 3 } as const

const textHash = (text: string): Hex => keccak256(stringToHex(text))
const word = (value: bigint | number): Hex => numberToHex(value, { size: 32 })
const address = (value: string): Hex => pad(value.toLowerCase() as Hex)
const hashOf = (...parts: Hex[]): Hex => keccak256(concat(parts))

const orderType =
  'Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder)'
const orderTypeHash = textHash(orderType)
/** A contract wallet checks the order inside of a structure that names the wallet (ERC-7739). */
const nestedTypeHash = textHash(
  `TypedDataSign(Order contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt)${orderType}`,
)
const domainTypeHash = textHash(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
)
const domainOf = (name: string, version: string, contract: string): Hex =>
  hashOf(domainTypeHash, textHash(name), textHash(version), word(chainId), address(contract))
const orderDomain = (exchange: ExchangeName): Hex =>
  domainOf('Polymarket CTF Exchange', exchanges[exchange].domainVersion, exchanges[exchange].address)
const orderDomains: Record<ExchangeName, Hex> = {
  standard: orderDomain('standard'),
  neg_risk: orderDomain('neg_risk'),
  v3: orderDomain('v3'),
}

const walletName = 'DepositWallet'
const walletVersion = '1'
const walletNameHash = textHash(walletName)
const walletVersionHash = textHash(walletVersion)

/** A deposit wallet signs its orders itself, by its owner's key. */
export const orderSigner = ({ walletKind, wallet, owner }: OutcomeOrderAction): string =>
  walletKind === 'deposit_wallet' ? wallet : owner

const contentsOf = (order: OutcomeOrderAction): Hex[] => [
  orderTypeHash,
  word(order.salt),
  address(order.wallet),
  address(orderSigner(order)),
  word(BigInt(order.outcomeId)),
  word(order.makerUnits),
  word(order.takerUnits),
  word(order.side === 'buy' ? 0 : 1),
  word(signatureTypes[order.walletKind]),
  word(order.timestampMs),
  order.metadata as Hex,
  order.builder as Hex,
]
const contentsHash = (order: OutcomeOrderAction): Hex => hashOf(...contentsOf(order))

const domainOfOrder = ({ exchange }: OutcomeOrderAction): Hex => {
  const domain = orderDomains[exchange as ExchangeName]
  if (domain === undefined) throw new Error(`unknown exchange: ${exchange}`)
  return domain
}

const typedDigest = (domain: Hex, struct: Hex): Hex => hashOf('0x1901', domain, struct)

/** The order's hash, which the venue takes as the id of the order. */
export const orderIdOf = (order: OutcomeOrderAction): Hex =>
  typedDigest(domainOfOrder(order), contentsHash(order))

/** Returns the hashes that the order has at other times, without building it anew for each. */
export function orderIdsAt(order: OutcomeOrderAction): (timestampMs: number) => Hex {
  const parts = contentsOf(order)
  const contents = hexToBytes(concat(parts))
  const time = new DataView(contents.buffer, contents.byteOffset + 32 * timePart, 32)
  const digest = hexToBytes(concat(['0x1901', domainOfOrder(order), word(0)]))
  return (timestampMs) => {
    time.setBigUint64(24, BigInt(timestampMs))
    digest.set(keccak256(contents, 'bytes'), 34)
    return keccak256(digest)
  }
}
/** The place of the time among the parts of the contents. */
const timePart = 9

const orderDigest = (order: OutcomeOrderAction): Hex => {
  if (order.walletKind !== 'deposit_wallet') return orderIdOf(order)
  const nested = hashOf(
    nestedTypeHash,
    contentsHash(order),
    walletNameHash,
    walletVersionHash,
    word(chainId),
    address(order.wallet),
    word(0),
  )
  return typedDigest(domainOfOrder(order), nested)
}

const orderTypeLength = numberToHex(orderType.length, { size: 2 })
/** A deposit wallet finds domain, contents and their type after the owner's signature (ERC-7739). */
const orderSignature = (order: OutcomeOrderAction, signature: Hex): Hex =>
  order.walletKind === 'deposit_wallet'
    ? concat([signature, domainOfOrder(order), contentsHash(order), stringToHex(orderType), orderTypeLength])
    : signature

const signInDomain = hashOf(
  textHash('EIP712Domain(string name,string version,uint256 chainId)'),
  textHash('ClobAuthDomain'),
  textHash('1'),
  word(chainId),
)
const signInTypeHash = textHash('ClobAuth(address address,string timestamp,uint256 nonce,string message)')
const signInMessageHash = textHash('This message attests that I control the given wallet')

/** https://docs.polymarket.com/api-reference/authentication */
const signInDigest = ({ owner, timestampSeconds, nonce }: SignInAction): Hex =>
  typedDigest(
    signInDomain,
    hashOf(
      signInTypeHash,
      address(owner),
      textHash(String(timestampSeconds)),
      word(nonce),
      signInMessageHash,
    ),
  )

const callType = 'Call(address target,uint256 value,bytes data)'
const callTypeHash = textHash(callType)
const batchTypeHash = textHash(`Batch(address wallet,uint256 nonce,uint256 deadline,Call[] calls)${callType}`)

const batchDigest = ({ wallet, nonce, deadlineSeconds, calls }: WalletBatchAction): Hex => {
  const callHashes = calls.map(({ to, value, data }) =>
    hashOf(callTypeHash, address(to), word(value), keccak256(data as Hex)),
  )
  const struct = hashOf(
    batchTypeHash,
    address(wallet),
    word(nonce),
    word(deadlineSeconds),
    hashOf(...callHashes),
  )
  return typedDigest(domainOf(walletName, walletVersion, wallet), struct)
}

const safeDomainTypeHash = textHash('EIP712Domain(uint256 chainId,address verifyingContract)')
const safeTypeHash = textHash(
  'SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)',
)

/** The hash of a Safe's transaction without a refund of gas. */
export const safeTransactionHash = (action: SafeBatchAction): Hex => {
  const { to, value, data, operation } = safeTransactionOf(action.calls)
  const refund = [word(0), word(0), word(0), word(0), word(0)]
  const call = [address(to), word(value), keccak256(data), word(operation)]
  const struct = hashOf(safeTypeHash, ...call, ...refund, word(action.nonce))
  return typedDigest(hashOf(safeDomainTypeHash, word(chainId), address(action.safe)), struct)
}

/** The relayer expects the Safe's hash signed as a message, and a `v` that says so. */
const messageDigest = (hash: Hex): Hex =>
  keccak256(concat([stringToHex('\u0019Ethereum Signed Message:\n32'), hash]))
const safeSignature = (signature: Hex): Hex => {
  const v = Number.parseInt(signature.slice(130), 16)
  return `${signature.slice(0, 130)}${(v + 4).toString(16)}` as Hex
}

/** Returns the 32 bytes that the owner's key signs for an action. */
export function digestOf(action: PredictionAction): Hex {
  switch (action.type) {
    case 'order':
      return orderDigest(action)
    case 'sign_in':
      return signInDigest(action)
    case 'wallet_batch':
      return batchDigest(action)
    case 'safe_batch':
      return messageDigest(safeTransactionHash(action))
  }
}

/** Returns the signature in the form of the venue, from the 65 bytes that the owner's key made. */
export function venueSignature(action: PredictionAction, signature: Hex): Hex {
  if (size(signature) !== 65) throw new Error('a signature of the key has 65 bytes')
  if (action.type === 'order') return orderSignature(action, signature)
  return action.type === 'safe_batch' ? safeSignature(signature) : signature
}
