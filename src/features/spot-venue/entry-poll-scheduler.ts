import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import type { PendingEntry } from './trigger-store.ts'

/** Only some pending entries are polled in a round, because every request costs rate budget. */

export type PriceOf = (market: string) => string | undefined

/** An entry whose price was reached has most likely filled, so it comes first; the others are polled in turn. */
export const reachedMax = 3
export const othersMax = 1
/** How many rounds pass between two polls of an entry whose price was not reached. */
export const pausePolls = 5

export function createPollScheduler() {
  const lastPolls = new Map<string, number>()
  let polls = 0
  const lastOf = ({ entry_cloid }: PendingEntry) => lastPolls.get(entry_cloid) ?? Number.NEGATIVE_INFINITY

  return {
    choose(rows: readonly PendingEntry[], priceOf: PriceOf): PendingEntry[] {
      polls += 1
      const pending = new Set(rows.map(({ entry_cloid }) => entry_cloid))
      for (const cloid of lastPolls.keys()) if (!pending.has(cloid)) lastPolls.delete(cloid)
      const isReached = ({ market, price }: PendingEntry) => {
        const now = priceOf(market)
        return now !== undefined && price !== null && compareDecimals(now, price) <= 0
      }
      const queue = rows.toSorted((a, b) => lastOf(a) - lastOf(b))
      const others = queue.filter((row) => !isReached(row) && polls - lastOf(row) >= pausePolls)
      const chosen = [...queue.filter(isReached).slice(0, reachedMax), ...others.slice(0, othersMax)]
      for (const { entry_cloid } of chosen) lastPolls.set(entry_cloid, polls)
      return chosen
    },
  }
}
