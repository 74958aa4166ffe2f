import { createOrderLookup } from '#engines/venue/orders/order-lookup.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { createPollScheduler, type PriceOf } from './entry-poll-scheduler.ts'
import { type PendingEntry, pendingEntries, resolvePendingEntry } from './trigger-store.ts'

/** This module polls entries with waiting exits, and arms or cancels the exits when an entry ends. */

type PendingEntriesDeps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince'>
  evmAddressOf: (userId: string) => Promise<string>
}

/** How far the venue's clock may differ from the gateway's. */
const clockToleranceMs = 60_000

export function createPendingEntries({ db, venue, evmAddressOf }: PendingEntriesDeps) {
  const { choose } = createPollScheduler()

  /** Returns the filled size of an entry, null if nothing was filled; undefined while the order may still rest. */
  const filledOf = async ({
    user_id,
    entry_cloid,
    since,
  }: PendingEntry): Promise<string | null | undefined> => {
    const account = await evmAddressOf(user_id)
    const sinceMs = since.getTime() - clockToleranceMs
    const found = await createOrderLookup(venue, { account, sinceMs, allRecords: true }).find({
      cloid: entry_cloid,
    })
    if (!found) return undefined
    const { phase, filledSize } = found
    // The order is in no list any more, so its fills determine the size to protect.
    if (phase === 'filled' || phase === 'filling') return filledSize
    if (phase !== 'cancelled' && phase !== 'rejected') return undefined
    return compareDecimals(filledSize, '0') > 0 ? filledSize : null
  }

  return {
    async resolve(markets: readonly string[], priceOf: PriceOf): Promise<void> {
      for (const row of choose(await pendingEntries(db, markets), priceOf))
        try {
          const filled = await filledOf(row)
          if (filled !== undefined) await resolvePendingEntry(db, row.entry_cloid, filled)
        } catch (fault) {
          // An entry that could not be read is polled again in a later round.
          if (!(fault instanceof Fault)) throw fault
        }
    },
  }
}
