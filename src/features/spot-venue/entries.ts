import { isEnding } from '#features/venue/bracket.ts'
import { Fault } from '#kernel/fault.ts'
import { fromUnits, toUnits } from '#kernel/money.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type Entry, settleWaiting, waitingEntries } from './triggers.ts'
import { type PriceOf, turns } from './turns.ts'

/** Finds out what became of the orders whose exits wait, and wakes the exits or lets them go. */

type Needs = {
  on: Queryable
  venue: Pick<Hyperliquid, 'order'>
  evmAddressOf: (userId: string) => Promise<string>
}

const scale = 18

export function entries({ on, venue, evmAddressOf }: Needs) {
  const { choose } = turns()

  /** What the order has filled, null for nothing; undefined while it rests or nobody knows it. */
  const filledOf = async ({ user_id, parent }: Entry): Promise<string | null | undefined> => {
    const found = await venue.order(await evmAddressOf(user_id), parent)
    if (!found) return undefined
    const { order, status } = found
    if (status === 'filled') return order.origSize
    if (!isEnding(status)) return undefined
    const filled = toUnits(order.origSize, scale) - toUnits(order.size, scale)
    return filled > 0n ? fromUnits(filled, scale) : null
  }

  return {
    async settle(markets: readonly string[], priceOf: PriceOf): Promise<void> {
      for (const row of choose(await waitingEntries(on, markets), priceOf))
        try {
          const filled = await filledOf(row)
          if (filled !== undefined) await settleWaiting(on, row.parent, filled)
        } catch (fault) {
          // Whoever cannot be told of now is asked about again in its turn.
          if (!(fault instanceof Fault)) throw fault
        }
    },
  }
}
