import { isUnits, parseText } from '#kernel/money/provider-answer-reader.ts'
import type { ProviderState, ProviderStatus, ProviderTx, StatusRequest } from '#kernel/money/swap-provider.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { changed, fieldsOf } from './answer-reader.ts'
import type { ForeignNames } from './chain-and-currency-names.ts'

/** Reads the status of a request at Relay. An unknown status word means that the request is not over. */

const states: Readonly<Record<string, ProviderState>> = {
  waiting: 'waiting',
  success: 'success',
  refund: 'refunded',
  // Earlier versions of Relay's documentation use these two words for a refund.
  refunded: 'refunded',
  fallback: 'refunded',
  failure: 'failed',
  unknown: 'unknown',
}
const hashesMax = 16
const evmHash = /^0x[0-9a-fA-F]{64}$/
const solanaSignature = /^[1-9A-HJ-NP-Za-km-z]{64,90}$/

type Reading = { request: StatusRequest; names: ForeignNames }

export function statusOf(body: unknown, { request, names }: Reading): ProviderStatus {
  const { status, inTxHashes, txHashes, details, failReason, refundFailReason } = fieldsOf(body, 'status')
  if (typeof status !== 'string') throw changed('no status')
  const state = states[status] ?? 'settling'
  const { originChainId, destinationChainId } = request
  const isRefund = state === 'refunded' || state === 'failed'
  const isOver = isRefund || state === 'success'
  // Refunds are paid where the deposit was made, or on the other chain. A reported success can have been refunded
  // too.
  const paidChainIds = new Set(isOver ? [originChainId, destinationChainId] : [destinationChainId])
  return {
    state,
    reason: (isRefund ? reasonOf(failReason) : null) ?? parseText(details),
    refundReason: isRefund ? reasonOf(refundFailReason) : null,
    originTxs: txsOf(inTxHashes, originChainId, names),
    destinationTxs: [...paidChainIds].flatMap((chainId) => txsOf(txHashes, chainId, names)),
    refund: null,
    paidToken: null,
  }
}

/** Returns the reason that Relay states, or null if it states none. */
const reasonOf = (value: unknown): string | null => (value === 'N/A' ? null : parseText(value))

function txsOf(value: unknown, chainId: string, names: ForeignNames): ProviderTx[] {
  const pattern = names.rowOf(chainId)?.family === 'solana' ? solanaSignature : evmHash
  const list: unknown[] = Array.isArray(value) ? value.slice(-hashesMax) : []
  return list.flatMap((each) =>
    typeof each === 'string' && pattern.test(each) ? [{ chainId, txHash: each }] : [],
  )
}

/** Adds the reason and the refund of an ended request to its status, from Relay's list of requests. */
export function withReasons(
  status: ProviderStatus,
  body: unknown,
  { request, names }: Reading,
): ProviderStatus {
  const list = isRecord(body) && Array.isArray(body.requests) ? body.requests : []
  const own = list.slice(0, hashesMax).find((each) => isRecord(each) && each.id === request.providerRequestId)
  const data = isRecord(own) && isRecord(own.data) ? own.data : undefined
  if (!data) return status
  return {
    ...status,
    reason: reasonOf(data.failReason) ?? status.reason,
    refundReason: reasonOf(data.refundFailReason) ?? status.refundReason,
    refund: status.state === 'refunded' ? refundOf(status, data.refundCurrencyData, names) : null,
  }
}

function refundOf(status: ProviderStatus, value: unknown, names: ForeignNames): ProviderStatus['refund'] {
  if (!isRecord(value) || !isRecord(value.currency)) return null
  const { amount, currency } = value
  const chainId = names.publicId(currency.chainId)
  const token =
    chainId !== undefined && typeof currency.address === 'string'
      ? names.token(chainId, currency.address)
      : undefined
  if (chainId === undefined || token === undefined) return null
  if (!isUnits(amount)) return null
  const txHash = status.destinationTxs.findLast((each) => each.chainId === chainId)?.txHash ?? null
  return { chainId, token, amountUnits: BigInt(amount), txHash }
}

export function requestIdIn(body: unknown): string | undefined {
  const list = isRecord(body) && Array.isArray(body.requests) ? body.requests : []
  const [only] = list
  return list.length === 1 && isRecord(only) && typeof only.id === 'string' ? only.id : undefined
}
