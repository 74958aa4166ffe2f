import { exitStateOf, isEnding } from '#engines/venue/records/bracket.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { OwnOrder } from './live-records.ts'
import type { VenueReadDeps } from './live-venue.ts'

/**
 * Finds stops that the venue has ended unnoticed: without a stream of the account, the record of an order is
 * closed by a comparison that may be a minute away.
 */

export type StopLookupDeps = VenueReadDeps & {
  /** Returns since when this instance receives how the orders of an account end; undefined if it does not. */
  streamedSinceMs: (account: string) => number | undefined
}

/** The venue shows an order after this time at the latest; before, it may not know it yet. */
const shownAfterMs = 10_000
/** What ended while a stream was interrupted is found in this time after it. */
const gapMs = 10_000
/** A position has one stop, and a second one while the first is made smaller. */
const stopsMax = 4

/** A stop that the venue has ended because its target has filled protects nothing any more, and is not missing. */
const isMissing = (status: string): boolean => isEnding(status) && exitStateOf(status) === 'missing'

/** A venue that does not answer now is asked again by the next look; what the record says is repaired meanwhile. */
function unknownIfRetryable(error: unknown): 'unknown' {
  if (error instanceof Fault && error.retryable) return 'unknown'
  throw error
}

/** Returns the orders without the stops that have ended at the venue, of an account without a stream. */
export async function withoutEndedStops(
  { venue, clock, streamedSinceMs, evmAddressOf }: StopLookupDeps,
  userId: string,
  orders: readonly OwnOrder[],
): Promise<readonly OwnOrder[]> {
  const stops = orders.filter(({ leg, trigger_price }) => leg.startsWith('sl') && trigger_price !== null)
  if (stops.length === 0) return orders
  const account = await evmAddressOf(userId)
  const nowMs = clock.now().getTime()
  const streamedMs = streamedSinceMs(account)
  if (streamedMs !== undefined && streamedMs < nowMs - gapMs) return orders
  const shownBefore = nowMs - shownAfterMs
  const looked = await Promise.all(
    stops.slice(0, stopsMax).map(async ({ cloid, at }) => {
      const found = await venue.order(account, cloid).catch(unknownIfRetryable)
      if (found === 'unknown') return undefined
      const hasEnded = found ? isMissing(found.status) : at.getTime() < shownBefore
      return hasEnded ? cloid : undefined
    }),
  )
  return orders.filter(({ cloid }) => !looked.includes(cloid))
}
