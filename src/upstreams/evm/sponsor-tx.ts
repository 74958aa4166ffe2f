import type { TransactionSerializableEIP1559, TransactionSerializableEIP7702 } from 'viem'
import { keccak256, parseTransaction, serializeTransaction } from 'viem/utils'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { EvmIntent, PolicyReceipt, SignedBatch } from '#kernel/task/signer.ts'
import { batchHash, executeData } from './batch.ts'
import type { Fees } from './fees.ts'
import { addressOfKey, signDigest } from './secp256k1.ts'
import type { Hex } from './wire.ts'

export type SignedTx = { externalId: string; raw: string; nonce: bigint }
export type BatchTxOrder = {
  intent: EvmIntent
  signed: SignedBatch
  receipt: PolicyReceipt
  signer: string
  gas: bigint
  fees: Fees
}
/** A transaction that lacks only its nonce and the signature of the sponsor. */
export type PreparedBatchTx = { batchHash: string; sign(nonce: bigint): Promise<SignedTx> }
type Unsigned = TransactionSerializableEIP1559 | TransactionSerializableEIP7702
/** The private keys of the sponsors of one chain, by lower-case address. */
export type SponsorKeys = { row: EvmChainRow; byAddress: ReadonlyMap<string, Uint8Array> }

export const sponsorKeys = (row: EvmChainRow, secrets: readonly Uint8Array[]): SponsorKeys => ({
  row,
  byAddress: new Map(secrets.map((secret) => [addressOfKey(secret).toLowerCase(), secret] as const)),
})

function keyOf({ byAddress }: SponsorKeys, signer: string): Uint8Array {
  const key = byAddress.get(signer.toLowerCase())
  if (!key) throw new Error(`no key of the sponsor ${signer}`)
  return key
}

async function signTx(keys: SponsorKeys, signer: string, transaction: Unsigned): Promise<SignedTx> {
  const signature = signDigest(keyOf(keys, signer), keccak256(serializeTransaction(transaction)))
  const raw = serializeTransaction(transaction, signature)
  return { externalId: keccak256(raw), raw, nonce: BigInt(transaction.nonce ?? 0) }
}

const feeFields = ({ row }: SponsorKeys, nonce: bigint, { maxFeeWei, priorityWei }: Fees) => ({
  chainId: Number(row.id),
  nonce: Number(nonce),
  maxFeePerGas: maxFeeWei,
  maxPriorityFeePerGas: priorityWei,
})

/** Signs a transfer of nothing to the signer itself, which only uses the nonce. */
export const signEmptyTx = (
  keys: SponsorKeys,
  signer: string,
  nonce: bigint,
  fees: Fees,
): Promise<SignedTx> =>
  signTx(keys, signer, {
    type: 'eip1559',
    ...feeFields(keys, nonce, fees),
    to: signer as Hex,
    value: 0n,
    gas: keys.row.gas.emptyTx,
  })

export function prepareBatch(
  keys: SponsorKeys,
  { intent, signed: batch, signer, gas, fees }: BatchTxOrder,
): PreparedBatchTx {
  const data = executeData(intent.batch, batch.signature)
  const { delegation } = batch
  const authorizationList = delegation && [
    {
      chainId: delegation.chainId,
      address: delegation.address as Hex,
      nonce: delegation.nonce,
      r: delegation.r as Hex,
      s: delegation.s as Hex,
      yParity: delegation.yParity,
    },
  ]
  return {
    batchHash: batchHash(intent.batch),
    sign(nonce) {
      const fields = feeFields(keys, nonce, fees)
      const call = { ...fields, to: intent.batch.account as Hex, value: 0n, data, gas }
      return signTx(
        keys,
        signer,
        authorizationList ? { type: 'eip7702', ...call, authorizationList } : { type: 'eip1559', ...call },
      )
    },
  }
}

export const signAgain = (
  keys: SponsorKeys,
  raw: string,
  signer: string,
  { nonce, fees }: { nonce: bigint; fees: Fees },
): Promise<SignedTx> =>
  signTx(keys, signer, { ...unsignedOf(raw), ...feeFields(keys, nonce, fees) } as Unsigned)

/** Whether the transaction contains no call, so that it moves nothing. */
export const isEmptyTx = (raw: string): boolean => unsignedOf(raw).data === undefined

export const nonceOfTx = (raw: string): bigint => BigInt(unsignedOf(raw).nonce ?? 0)

export function parseFees(raw: string): Fees {
  const { maxFeePerGas, maxPriorityFeePerGas } = parseTransaction(raw as Hex)
  if (maxFeePerGas === undefined || maxPriorityFeePerGas === undefined)
    throw new Error('the transaction has no EIP-1559 fees')
  return { maxFeeWei: maxFeePerGas, priorityWei: maxPriorityFeePerGas }
}

type Signature = { r?: Hex; s?: Hex; v?: bigint; yParity?: number }

function unsignedOf(raw: string): Unsigned {
  const {
    r: _r,
    s: _s,
    v: _v,
    yParity: _y,
    ...unsigned
  } = parseTransaction(raw as Hex) as Unsigned & Signature
  return unsigned
}
