import type { PaidUnits, SwapTaskData } from '#features/swap/task-data.ts'
import type { Token } from '#kernel/money/chains.ts'
import { isRecord, type JsonObject } from '#kernel/wire/json.ts'
import type { Payment } from './payments.ts'
import { refundView } from './swap-end.ts'
import { soldFor } from './swap-fill.ts'
import { isDeposited, type Verdict, verdictOn, worthOfUnits } from './verdict.ts'

export type Late = {
  type: 'refund' | 'fill'
  token: Token
  account: string
  view: { chain_id: string; token_address: string; amount: string; tx_hash: string }
  /** Whether the payment is in the deposited token. The verdict counts a refund in another token by `worthMicros`. */
  isDeposit: boolean
  worthMicros: bigint
}

export function lateOf(payment: Payment, worthMicros: bigint): Late {
  const { place } = payment
  return {
    type: place.isFill ? 'fill' : 'refund',
    token: place.token,
    account: place.owner,
    view: refundView(payment) as Late['view'],
    isDeposit: isDeposited(place.task.data, payment),
    worthMicros,
  }
}

export function totalsAfter({ fill, back }: PaidUnits, { type, isDeposit, view }: Late): PaidUnits {
  const add = (units: string) => String(BigInt(units) + BigInt(view.amount))
  return { fill: type === 'fill' ? add(fill) : fill, back: isDeposit ? add(back) : back }
}

export function lateVerdict(data: SwapTaskData, totals: PaidUnits, late: Late): Verdict {
  const [fillUnits, backUnits] = [BigInt(totals.fill), BigInt(totals.back)]
  const isOther = late.type === 'refund' && !late.isDeposit
  return verdictOn({
    fillUnits,
    minUnits: BigInt(data.amount_out_min),
    remainingMicros:
      worthOfUnits(data, 'fill', fillUnits) +
      worthOfUnits(data, 'back', backUnits) +
      (isOther ? late.worthMicros : 0n),
    valueMicros: BigInt(data.usd_micros),
    isReturned: late.type === 'refund' || backUnits > 0n,
  })
}

type After = { late: Late; totals: PaidUnits; verdict: Verdict; data: SwapTaskData }

/**
 * Returns the ended task's result with the late payment added. A result with the field `remaining` is of a task that
 * had the swap as a leg.
 */
export function resultAfter(result: JsonObject, after: After): JsonObject {
  const { late, totals } = after
  if ('remaining' in result) return legResultAfter(result, after)
  if (late.type === 'fill') return { ...result, amount_out: totals.fill, tx_hash: late.view.tx_hash }
  return { ...result, refunded: refundedAfter(result.refunded, late) }
}

/** Returns the first refund, with the sum of all refunds in the same token as its amount. */
function refundedAfter(shown: unknown, { view }: Late): JsonObject {
  if (!isRecord(shown)) return view
  const isSame = shown.chain_id === view.chain_id && shown.token_address === view.token_address
  const amount = isSame ? BigInt(String(shown.amount)) + BigInt(view.amount) : shown.amount
  return { ...(shown as JsonObject), amount: String(amount) }
}

/**
 * Adds a late payment to the result of a task that had the swap as a leg. After a partial payment, `remaining` still
 * names where the rest is.
 */
function legResultAfter(result: JsonObject, { late, totals, verdict, data }: After): JsonObject {
  const { remaining, legs } = result
  const { type, token, account, view } = late
  const isProvided = isRecord(remaining) && remaining.place === 'provider'
  const isOver = verdict === 'filled' || verdict === 'returned'
  const left = BigInt(data.amount_in) - soldFor(data, BigInt(totals.fill)) - BigInt(totals.back)
  const rest = isOver
    ? { place: 'wallet', ...view, symbol: token.symbol, account }
    : isProvided
      ? { ...(remaining as JsonObject), amount: String(left > 0n ? left : 0n) }
      : (remaining ?? null)
  const isSwap = (leg: unknown): leg is JsonObject => isRecord(leg) && leg.role === 'swap'
  return {
    ...result,
    ...(type === 'fill' &&
      Array.isArray(legs) && {
        legs: legs.map((leg) => (isSwap(leg) ? { ...leg, amount: totals.fill, tx_hash: view.tx_hash } : leg)),
      }),
    remaining: rest,
  }
}

const sentences = {
  filled: 'The deposit was filled after the swap had failed',
  returned: 'The deposit was refunded after the swap had failed',
  fill: 'A part of the swap was paid after it had failed',
  refund: 'A part of the deposit was refunded after the swap had failed',
}

export const lateSentence = ({ type }: Late, verdict: Verdict): string =>
  verdict === 'filled' || verdict === 'returned' ? sentences[verdict] : sentences[type]
