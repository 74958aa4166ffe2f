import { isEnding } from '#features/venue/bracket.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { fromUnits, toUnits } from '#kernel/money.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type Entry, settleWaiting, waitingEntries } from './triggers.ts'

/** Asks what became of the orders whose exits wait: a few at a time, since every question costs of the venue's budget. */

type Needs = {
  on: Queryable
  venue: Pick<Hyperliquid, 'order'>
  evmAddressOf: (userId: string) => Promise<string>
}
type PriceOf = (market: string) => string | undefined

/** An order that the price has reached has most likely filled; the others take turns. */
const reachedMost = 3
const othersMost = 1
/** Looks between two questions about an order that the price has not reached. */
const pause = 5
const scale = 18

export function entries({ on, venue, evmAddressOf }: Needs) {
  const asked = new Map<string, number>()
  let looks = 0

  const chosen = (rows: readonly Entry[], priceOf: PriceOf): Entry[] => {
    const lastOf = ({ parent }: Entry) => asked.get(parent) ?? Number.NEGATIVE_INFINITY
    const reached = ({ market, price }: Entry) => {
      const now = priceOf(market)
      return now !== undefined && price !== null && compareDecimals(now, price) <= 0
    }
    const turn = rows.toSorted((a, b) => lastOf(a) - lastOf(b))
    const others = turn.filter((row) => !reached(row) && looks - lastOf(row) >= pause)
    return [...turn.filter(reached).slice(0, reachedMost), ...others.slice(0, othersMost)]
  }

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
      looks += 1
      const rows = await waitingEntries(on, markets)
      const living = new Set(rows.map(({ parent }) => parent))
      for (const parent of asked.keys()) if (!living.has(parent)) asked.delete(parent)
      for (const row of chosen(rows, priceOf)) {
        asked.set(row.parent, looks)
        try {
          const filled = await filledOf(row)
          if (filled !== undefined) await settleWaiting(on, row.parent, filled)
        } catch (fault) {
          // Whoever cannot be told of now is asked about again in its turn.
          if (!(fault instanceof Fault)) throw fault
        }
      }
    },
  }
}
