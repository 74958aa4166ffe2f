import { compareDecimals } from '#kernel/decimal-fields.ts'
import type { Entry } from './triggers.ts'

/** Which of the orders whose exits wait are asked about now: every question costs of the venue's budget. */

/** Prices that the venue tells now, by market. */
export type PriceOf = (market: string) => string | undefined

/** An order that the price has reached has most likely filled; the others take turns. */
export const reachedMost = 3
export const othersMost = 1
/** Looks between two questions about an order that the price has not reached. */
export const pauseLooks = 5

export function turns() {
  const asked = new Map<string, number>()
  let looks = 0
  const lastOf = ({ parent }: Entry) => asked.get(parent) ?? Number.NEGATIVE_INFINITY

  return {
    choose(rows: readonly Entry[], priceOf: PriceOf): Entry[] {
      looks += 1
      const living = new Set(rows.map(({ parent }) => parent))
      for (const parent of asked.keys()) if (!living.has(parent)) asked.delete(parent)
      const isReached = ({ market, price }: Entry) => {
        const now = priceOf(market)
        return now !== undefined && price !== null && compareDecimals(now, price) <= 0
      }
      const queue = rows.toSorted((a, b) => lastOf(a) - lastOf(b))
      const others = queue.filter((row) => !isReached(row) && looks - lastOf(row) >= pauseLooks)
      const chosen = [...queue.filter(isReached).slice(0, reachedMost), ...others.slice(0, othersMost)]
      for (const { parent } of chosen) asked.set(parent, looks)
      return chosen
    },
  }
}
