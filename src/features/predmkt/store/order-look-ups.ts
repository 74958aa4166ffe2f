import type { PredictionOrderRow } from '#store/tables/predmkt.ts'
import { lostAfterMs, returnsWithinMs } from './order-store.ts'

/** What a reading of the venue leaves out of the orders of an account. */

/** After so many misses the next look-up waits as long as it takes until the order counts as ended. */
const missesThen = 8

/**
 * Whether an order that is not in the list of open ones is looked up by its id now. Each time that the venue does not
 * know it doubles the wait, which ends with the order.
 */
export const isDueLookUp = (
  { misses, missing_since: since }: Pick<PredictionOrderRow, 'misses' | 'missing_since'>,
  now: Date,
): boolean => {
  if (since === null) return true
  const waitMs = Math.min(lostAfterMs * 2 ** (misses - missesThen), lostAfterMs + returnsWithinMs)
  return now.getTime() - since.getTime() >= waitMs
}

/** Whether the list of open orders says something of an order that its row does not. */
export const isChanged = (
  { status, matched, misses }: Pick<PredictionOrderRow, 'status' | 'matched' | 'misses'>,
  { matchedUnits }: { matchedUnits: bigint },
): boolean => status !== 'live' || misses > 0 || BigInt(matched) < matchedUnits
