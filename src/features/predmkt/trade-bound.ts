import type { Book, BookLevel } from '#kernel/money/prediction-views.ts'
import { dollar, type OrderTerms } from './order-request.ts'

/**
 * What an order may give away. A sale that takes much less than the market's price does not count as an exit, and a
 * purchase that pays much more needs an approval: a stolen trading token could otherwise sell all shares to a bid of its
 * own, or buy its own worthless shares.
 */

/** The share of the market's price that an order may lose; swaps have the same. */
const lossBpsMax = 2_500n
const all = 10_000n
/** The venue, too, shows the middle of a book only where bid and ask are this near to each other. */
const narrowMicros = dollar / 10n

type Side = OrderTerms['side']
type Order = { side: Side; sizeUnits: bigint }
export type Prices = Pick<Book, 'bids' | 'asks' | 'lastPriceMicros'>

const sizeOf = (levels: readonly BookLevel[]): bigint =>
  levels.reduce((sum, { sizeUnits }) => sum + sizeUnits, 0n)

/**
 * The middle of a book that is narrow, and that has as many shares there on both sides as the order; undefined where
 * somebody could have made the middle alone.
 */
export function middleMicros({ bids, asks }: Prices, sizeUnits: bigint): bigint | undefined {
  const [bid, ask] = [bids[0]?.priceMicros, asks[0]?.priceMicros]
  if (bid === undefined || ask === undefined || ask - bid > narrowMicros) return undefined
  const near = [
    bids.filter(({ priceMicros }) => ask - priceMicros <= narrowMicros),
    asks.filter(({ priceMicros }) => priceMicros - bid <= narrowMicros),
  ]
  return near.every((levels) => sizeOf(levels) >= sizeUnits) ? (bid + ask) / 2n : undefined
}

/** What else says what a share is worth, where the book does not. */
export type KnownPrices = {
  /** The venue's prices of the last day. */
  dayMicros: readonly bigint[]
  /** What the user's own shares have cost on average; null without any. */
  costMicros: bigint | null
}

/** A few trades, which somebody can make with himself, do not move the median of a day. */
function medianMicros(prices: readonly bigint[]): bigint | undefined {
  const sorted = prices.toSorted((a, b) => (a < b ? -1 : Number(a > b)))
  return sorted[sorted.length >> 1]
}

/**
 * Without a middle, the price of a share to a seller is the higher one of the last price and the median of a day, and to a
 * buyer the lower one; where none is known, what the seller has paid, and then a dollar or a tick.
 */
export function marketPriceMicros(
  book: Prices & Pick<Book, 'tickMicros'>,
  { side, sizeUnits }: Order,
  { dayMicros, costMicros }: KnownPrices,
): bigint {
  const middle = middleMicros(book, sizeUnits)
  if (middle !== undefined) return middle
  const known = [book.lastPriceMicros, medianMicros(dayMicros)].flatMap((price) => price ?? [])
  // What the user has paid says nothing of what a further share may cost.
  if (known.length === 0) return side === 'sell' ? (costMicros ?? dollar) : book.tickMicros
  return known.reduce((one, other) => (one > other === (side === 'sell') ? one : other))
}

/** The lowest price at which a sale is no loss, on the grid. */
export function leastPriceMicros(marketMicros: bigint, tickMicros: bigint): bigint {
  const share = (marketMicros * (all - lossBpsMax) + all - 1n) / all
  // Where a share costs a few ticks, the next level of the book is further away than that.
  const least = share < marketMicros - tickMicros ? share : marketMicros - tickMicros
  const onTick = ((least + tickMicros - 1n) / tickMicros) * tickMicros
  return onTick < tickMicros ? tickMicros : onTick
}

/** The highest price at which a purchase is no loss, on the grid. */
function highestPriceMicros(marketMicros: bigint, tickMicros: bigint): bigint {
  const share = (marketMicros * (all + lossBpsMax)) / all
  const most = share > marketMicros + tickMicros ? share : marketMicros + tickMicros
  const onTick = most - (most % tickMicros)
  return onTick > dollar - tickMicros ? dollar - tickMicros : onTick
}

type Bounded = {
  /** The limit, or the worst price of a market order. */
  priceMicros: bigint
  /** The loss in ten-thousandths of what the order trades or pays; undefined where the order is within the bound. */
  acceptedLossBps?: number
}
type BoundedSale = Bounded & {
  /** What the sale counts to the limits of the policy: nothing for an exit. */
  countedMicros: bigint
}

type Terms = Pick<OrderTerms, 'priceMicros' | 'sizeUnits'>
type Grid = Pick<Book, 'tickMicros'>

/** Bounds a sale without a price, and judges one that names its own. */
export function boundSale(
  { priceMicros, sizeUnits }: Terms,
  { tickMicros }: Grid,
  market: bigint,
): BoundedSale {
  const least = leastPriceMicros(market, tickMicros)
  const price = priceMicros ?? least
  if (price >= least) return { priceMicros: price, countedMicros: 0n }
  const lossBps = ((market - price) * all) / market
  return {
    priceMicros: price,
    countedMicros: (sizeUnits! * market) / dollar,
    acceptedLossBps: Number(lossBps),
  }
}

/** Bounds a purchase without a price, and judges one that names its own. */
export function boundPurchase(
  { priceMicros }: Pick<Terms, 'priceMicros'>,
  { tickMicros }: Grid,
  market: bigint,
): Bounded {
  const highest = highestPriceMicros(market, tickMicros)
  const price = priceMicros ?? highest
  if (price <= highest) return { priceMicros: price }
  return { priceMicros: price, acceptedLossBps: Number(((price - market) * all) / price) }
}
