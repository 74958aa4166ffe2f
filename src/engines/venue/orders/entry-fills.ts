import { type Entry, sumFills } from '#engines/venue/records/bracket.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { subtractDecimals } from '#kernel/money/money.ts'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { OrderUpdate } from '#upstreams/hyperliquid/order-updates.ts'
import { clockToleranceMs } from './order-lookup.ts'
import type { OrderTaskData } from './order-task.ts'
import type { PlaceOrderDeps } from './place-order-deps.ts'

/** Returns all fills of an order from its stream, or undefined until the stream has delivered every fill. */
function completeFills({ fills, left, isList }: OrderUpdate, filledSize: string | null): Fill[] | undefined {
  if (isList && filledSize === null) return [...fills]
  const filled = filledSize ?? (left && filledOf(left))
  if (filled === undefined || compareDecimals(sumFills(fills).size, filled) < 0) return undefined
  return [...fills]
}

const filledOf = ({ size, origSize }: NonNullable<OrderUpdate['left']>): string =>
  subtractDecimals(origSize, size)

/**
 * Returns the fills of an order. They are read from a little before the task began, because the venue's clocks of
 * accounts and of fills can differ.
 */
export async function fillsOfOrder(
  venue: Pick<PlaceOrderDeps['venue'], 'fillsSince'>,
  { account, sinceMs }: { account: string; sinceMs: number },
  orderId: number | null,
): Promise<Fill[]> {
  const fills = await venue.fillsSince(account, sinceMs - clockToleranceMs)
  return fills.filter((fill) => fill.orderId === orderId)
}

/** Returns the fills of an entry; undefined while some are missing: the venue shows them soon after its reply. */
export async function fillsOfEntry(
  { venue, readStreamedOrder }: Pick<PlaceOrderDeps, 'venue' | 'readStreamedOrder'>,
  taskData: OrderTaskData,
  { orderId, filledSize }: Entry,
  { isStreamCurrent }: { isStreamCurrent: boolean },
): Promise<Fill[] | undefined> {
  const streamed =
    orderId === null || !isStreamCurrent
      ? undefined
      : await readStreamedOrder(taskData.account, orderId, (update) => completeFills(update, filledSize))
  if (streamed) return streamed
  const scope = { account: taskData.account, sinceMs: taskData.since_ms }
  const own = await fillsOfOrder(venue, scope, orderId)
  return filledSize === null || compareDecimals(sumFills(own).size, filledSize) >= 0 ? own : undefined
}
