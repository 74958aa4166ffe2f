import { compareDecimals } from '#kernel/decimal-fields.ts'
import { fromUnits, toUnits } from '#kernel/money.ts'
import type { OrderHeard } from '#upstreams/hyperliquid/heard.ts'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type Entry, sumOf } from './bracket.ts'
import type { Memory } from './memory.ts'
import { clockErrorMs } from './order-evidence.ts'
import type { PlaceNeeds } from './place.ts'

/** What was filled of an order that the venue has just taken, with fees: by the stream, or by asking. */

const scale = 18

/** Undefined as long as the stream has not told all of it. */
function wholeOf({ fills, left, isList }: OrderHeard, filledSize: string | null): Fill[] | undefined {
  if (isList && filledSize === null) return [...fills]
  const filled = filledSize ?? (left && filledOf(left))
  if (filled === undefined || compareDecimals(sumOf(fills).size, filled) < 0) return undefined
  return [...fills]
}

const filledOf = ({ size, origSize }: NonNullable<OrderHeard['left']>): string =>
  fromUnits(toUnits(origSize, scale) - toUnits(size, scale), scale)

/** By its id, so that fills of the moment before the task do no harm: the clock of the account may be ahead of theirs. */
export async function fillsOfOrder(
  venue: Pick<PlaceNeeds['venue'], 'fillsSince'>,
  { account, sinceMs }: { account: string; sinceMs: number },
  orderId: number | null,
): Promise<Fill[]> {
  const fills = await venue.fillsSince(account, sinceMs - clockErrorMs)
  return fills.filter((fill) => fill.orderId === orderId)
}

/** Undefined while fills are missing: the venue shows them a moment after its reply. */
export async function fillsOfEntry(
  { venue, orderHeard }: Pick<PlaceNeeds, 'venue' | 'orderHeard'>,
  memory: Memory,
  { orderId, filledSize }: Entry,
  isStreamAsNew: boolean,
): Promise<Fill[] | undefined> {
  const heard =
    orderId === null || !isStreamAsNew
      ? undefined
      : await orderHeard(memory.account, orderId, (told) => wholeOf(told, filledSize))
  if (heard) return heard
  const scope = { account: memory.account, sinceMs: memory.since_ms }
  const own = await fillsOfOrder(venue, scope, orderId)
  return filledSize === null || compareDecimals(sumOf(own).size, filledSize) >= 0 ? own : undefined
}
