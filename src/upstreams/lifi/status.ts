import type { Chain } from '#kernel/money/chains.ts'
import { isAddress, isHash, isUnits, parseText } from '#kernel/money/provider-answer-reader.ts'
import type { ProviderState, ProviderStatus, ProviderTx, StatusRequest } from '#kernel/money/swap-provider.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { changed, fieldsOf } from './answer-reader.ts'
import { nativeName } from './quote.ts'

/** Reads the status of a transfer at LI.FI. An unknown status word means that the transfer is not over. */

type Rows = ReadonlyMap<string, Pick<Chain, 'id' | 'native'>>

/** LI.FI's names for the causes of a failure, mapped to the names that the gateway shows, which are Relay's. */
const reasons: Readonly<Record<string, string>> = {
  SLIPPAGE_EXCEEDED: 'SLIPPAGE',
  EXPIRED: 'TTL_EXPIRED',
}

function stateOf(status: string, substatus: string | null): ProviderState {
  if (status === 'DONE') return substatus === 'REFUNDED' ? 'refunded' : 'success'
  if (status === 'FAILED') return 'failed'
  if (status === 'NOT_FOUND') return 'waiting'
  return status === 'INVALID' ? 'unknown' : 'settling'
}

export function statusOf(body: unknown, request: StatusRequest, rows: Rows): ProviderStatus {
  const { status, substatus, sending, receiving } = fieldsOf(body, 'status')
  if (typeof status !== 'string') throw changed('no status')
  const word = parseText(substatus)
  const state = stateOf(status, word)
  const isRefund = state === 'refunded'
  const paidAt =
    isRefund && !isAt(receiving, request.destinationChainId)
      ? request.originChainId
      : request.destinationChainId
  const paid = state === 'success' || isRefund ? txOf(receiving, paidAt) : []
  return {
    state,
    reason: state === 'failed' && word !== null ? (reasons[word] ?? word) : null,
    refundReason: null,
    originTxs: txOf(sending, request.originChainId),
    destinationTxs: paid,
    refund: isRefund ? paymentOf(receiving, paidAt, rows) : null,
    paidToken: state === 'success' ? (paymentOf(receiving, paidAt, rows)?.token ?? null) : null,
  }
}

/**
 * Whether one side of the transfer is on this chain. A refund is paid on the origin chain or on the destination chain.
 */
const isAt = (side: unknown, chainId: string): boolean => isRecord(side) && side.chainId === Number(chainId)

function txOf(side: unknown, chainId: string): ProviderTx[] {
  if (!isRecord(side) || !isHash(side.txHash)) return []
  // A payment on an unexpected chain is left out, because the gateway looks for its proof on the expected chain only.
  if (side.chainId !== undefined && side.chainId !== Number(chainId)) return []
  return [{ chainId, txHash: side.txHash.toLowerCase() }]
}

function paymentOf(side: unknown, chainId: string, rows: Rows): ProviderStatus['refund'] {
  if (!isRecord(side) || !isRecord(side.token)) return null
  const { amount, token, txHash } = side
  const row = rows.get(chainId)
  if (!row || !isAddress(token.address)) return null
  if (!isUnits(amount)) return null
  return {
    chainId,
    token: token.address.toLowerCase() === nativeName ? row.native.address : token.address,
    amountUnits: BigInt(amount),
    txHash: isHash(txHash) ? txHash.toLowerCase() : null,
  }
}
