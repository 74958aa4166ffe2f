import { gatherEvidence } from '#features/venue/order-evidence.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type Entry, settleWaiting, waitingEntries } from './triggers.ts'
import { type PriceOf, turns } from './turns.ts'

/** Finds out what became of the orders whose exits wait, and wakes the exits or lets them go. */

type Needs = {
  on: Queryable
  venue: Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince'>
  evmAddressOf: (userId: string) => Promise<string>
}

/** By which the clock of the venue may differ from ours. */
const clockSkewMs = 60_000

export function entries({ on, venue, evmAddressOf }: Needs) {
  const { choose } = turns()

  /** What the order has filled, null for nothing; undefined while it rests or no record shows it. */
  const filledOf = async ({ user_id, parent, since }: Entry): Promise<string | null | undefined> => {
    const account = await evmAddressOf(user_id)
    const sinceMs = since.getTime() - clockSkewMs
    const found = await gatherEvidence(venue, { account, sinceMs, allRecords: true }).find({ cloid: parent })
    if (!found) return undefined
    const { phase, filledSize } = found
    // In no list any more: what its fills show is what there is to protect.
    if (phase === 'filled' || phase === 'filling') return filledSize
    if (phase !== 'cancelled' && phase !== 'rejected') return undefined
    return compareDecimals(filledSize, '0') > 0 ? filledSize : null
  }

  return {
    async settle(markets: readonly string[], priceOf: PriceOf): Promise<void> {
      for (const row of choose(await waitingEntries(on, markets), priceOf))
        try {
          const filled = await filledOf(row)
          if (filled !== undefined) await settleWaiting(on, row.parent, filled)
        } catch (fault) {
          // An entry whose fill cannot be read now is asked about again in its turn.
          if (!(fault instanceof Fault)) throw fault
        }
    },
  }
}
