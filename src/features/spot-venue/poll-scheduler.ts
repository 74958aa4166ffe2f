import { compareDecimals } from '#kernel/decimal-fields.ts'
import type { PendingEntry } from './triggers.ts'

/** Which of the orders whose exits wait are asked about now: every question costs of the venue's budget. */

/** Prices that the venue tells now, by market. */
export type PriceOf = (market: string) => string | undefined

/** An order that the price has reached has most likely filled; the others take turns. */
export const reachedMax = 3
export const othersMax = 1
/** Looks between two questions about an order that the price has not reached. */
export const pausePolls = 5

export function createPollScheduler() {
  const asked = new Map<string, number>()
  let polls = 0
  const lastOf = ({ entry_cloid }: PendingEntry) => asked.get(entry_cloid) ?? Number.NEGATIVE_INFINITY

  return {
    choose(rows: readonly PendingEntry[], priceOf: PriceOf): PendingEntry[] {
      polls += 1
      const living = new Set(rows.map(({ entry_cloid }) => entry_cloid))
      for (const cloid of asked.keys()) if (!living.has(cloid)) asked.delete(cloid)
      const isReached = ({ market, price }: PendingEntry) => {
        const now = priceOf(market)
        return now !== undefined && price !== null && compareDecimals(now, price) <= 0
      }
      const queue = rows.toSorted((a, b) => lastOf(a) - lastOf(b))
      const others = queue.filter((row) => !isReached(row) && polls - lastOf(row) >= pausePolls)
      const chosen = [...queue.filter(isReached).slice(0, reachedMax), ...others.slice(0, othersMax)]
      for (const { entry_cloid } of chosen) asked.set(entry_cloid, polls)
      return chosen
    },
  }
}
