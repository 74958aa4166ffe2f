import type { Band, NearQuote } from './store.ts'

/**
 * The quotes near the prices of many markets. One read takes a bounded number of orders of all of them together: where
 * there are more, the markets take turns, and those that are awaited are read beside them.
 */

export type NearRead = {
  /** Keys of quotes that are left out. */
  except: readonly string[]
  /** Markets with a quote whose second one has to come in time. */
  awaited: ReadonlySet<string>
}
export type NearQuotes = (bands: readonly Band[], options: NearRead) => Promise<NearQuote[]>
type Options = {
  /** Of the first markets, up to `ordersMax` orders of all together. */
  read(bands: readonly Band[], except: readonly string[]): Promise<NearQuote[]>
  ordersMax: number
}

export function createNearQuotes({ read, ordersMax }: Options): NearQuotes {
  /** The market that the next read begins with. */
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
    // The last one may be read in part.
    const last = inTurn.findLastIndex(({ market }) => found.has(market))
    from = inTurn[Math.max(last, 1)]?.market ?? ''
    const late = inTurn.slice(last).filter(({ market }) => awaited.has(market))
    if (late.length === 0) return near
    const lateMarkets = new Set(late.map(({ market }) => market))
    return [...near.filter(({ market }) => !lateMarkets.has(market)), ...(await read(late, except))]
  }
}
