import type { Band, NearQuote } from './store.ts'

/**
 * Reads the quotes whose triggers are near the prices of their markets. One read takes a limited number of orders from
 * all markets together. If there are more orders, the next read begins with the market at which this one stopped, and
 * markets that await a second quote are read in addition.
 */

export type NearRead = {
  except: readonly string[]
  /** Markets whose quote reached a trigger and awaits a second quote while both are recent. */
  awaited: ReadonlySet<string>
}
export type NearQuotes = (bands: readonly Band[], options: NearRead) => Promise<NearQuote[]>
type Options = {
  /** Reads up to `ordersMax` orders in total, in the order of the markets. */
  read(bands: readonly Band[], except: readonly string[]): Promise<NearQuote[]>
  ordersMax: number
}

export function createNearQuotes({ read, ordersMax }: Options): NearQuotes {
  /** The market with which the next read begins. */
  let from = ''
  return async (bands, { except, awaited }) => {
    const sorted = bands.toSorted((one, other) => (one.market < other.market ? -1 : 1))
    const start = Math.max(
      sorted.findIndex(({ market }) => market >= from),
      0,
    )
    const inTurn = [...sorted.slice(start), ...sorted.slice(0, start)]
    const near = await read(inTurn, except)
    if (near.reduce((sum, { orders }) => sum + orders, 0) < ordersMax) return near
    const found = new Set(near.map(({ market }) => market))
    // The read may have ended within its last market, so the next read begins with this market.
    const last = inTurn.findLastIndex(({ market }) => found.has(market))
    from = inTurn[Math.max(last, 1)]?.market ?? ''
    const late = inTurn.slice(last).filter(({ market }) => awaited.has(market))
    if (late.length === 0) return near
    const lateMarkets = new Set(late.map(({ market }) => market))
    return [...near.filter(({ market }) => !lateMarkets.has(market)), ...(await read(late, except))]
  }
}
