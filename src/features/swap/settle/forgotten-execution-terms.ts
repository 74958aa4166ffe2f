import { refundFloorUnits } from '#features/swap/route/loss.ts'
import type { SwapTaskData } from '#features/swap/task-data.ts'
import { mulDiv } from '#kernel/money/money.ts'

type Terms = Pick<SwapTaskData, 'amount_in' | 'amount_out_min' | 'usd_micros' | 'quote'>

/**
 * Returns the terms for an execution that is older than its task, because the database was restored from a backup. Its
 * quote is lost and the price has moved, so a payment counts as complete if it is worth the least part of the sold
 * amount that any swap must pay.
 */
export function foundTerms(data: Omit<SwapTaskData, 'steps'>, inUnits: bigint): Terms {
  const part = (units: string): bigint => mulDiv(BigInt(units), inUnits, BigInt(data.amount_in)) || 1n
  const usd_micros = String(part(data.usd_micros))
  const minUnits = part(data.amount_out_min)
  const outUnits = part(String(data.quote.amount_out ?? data.amount_out_min))
  const worthUnits = refundFloorUnits({ amount_in: String(outUnits), usd_micros })
  const amount_out_min = String((worthUnits < minUnits ? worthUnits : minUnits) || 1n)
  const quote = { ...data.quote, amount_in: String(inUnits), amount_out: String(outUnits), amount_out_min }
  return { amount_in: String(inUnits), amount_out_min, usd_micros, quote }
}
