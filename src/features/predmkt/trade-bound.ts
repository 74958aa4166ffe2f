import type { Book } from '#kernel/money/prediction-views.ts'
import { dollar, type OrderTerms } from './order-request.ts'

/**
 * What a sale may give away. A sale that takes much less than the market's price does not count as an exit: a stolen
 * trading token could otherwise sell all shares of a thin market to a bid of its own.
 */

/** The share of the market's price that a sale may lose and still counts as an exit; swaps have the same. */
const exitLossBps = 2_500n
const all = 10_000n
/** The venue, too, shows the middle of a book only where bid and ask are this near to each other. */
const narrowMicros = dollar / 10n

type Prices = Pick<Book, 'bids' | 'asks' | 'lastPriceMicros'>

/** The price of a share: the middle of a narrow book, else the last trade; a dollar where nothing is known. */
export function marketPriceMicros({ bids, asks, lastPriceMicros }: Prices): bigint {
  const [bid, ask] = [bids[0]?.priceMicros, asks[0]?.priceMicros]
  if (bid !== undefined && ask !== undefined && ask - bid <= narrowMicros) return (bid + ask) / 2n
  return lastPriceMicros ?? dollar
}

type Sale = Pick<OrderTerms, 'priceMicros' | 'sizeUnits'>
type Bounded = {
  /** What a share sells for at least. */
  priceMicros: bigint
  /** What the sale counts to the limits of the policy: nothing for an exit. */
  countedMicros: bigint
  acceptedLossBps?: number
}

/** Bounds a sale without a price, and judges one that names its own. */
export function boundSale({ priceMicros, sizeUnits }: Sale, book: Book): Bounded {
  const market = marketPriceMicros(book)
  const { tickMicros } = book
  const share = (market * (all - exitLossBps) + all - 1n) / all
  // Where a share costs a few ticks, the next level of the book is further away than that.
  const floor = share < market - tickMicros ? share : market - tickMicros
  const lowest = floor < tickMicros ? tickMicros : floor
  const price = priceMicros ?? lowest
  if (price >= lowest) return { priceMicros: price, countedMicros: 0n }
  const lossBps = ((market - price) * all) / market
  return {
    priceMicros: price,
    countedMicros: (sizeUnits! * market) / dollar,
    acceptedLossBps: Number(lossBps),
  }
}
