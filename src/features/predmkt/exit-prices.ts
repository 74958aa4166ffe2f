import { leastPriceMicros, middleMicros, type Prices } from './trade-bound.ts'

/** At which prices exits sell. Each is bounded by the price of the market, so that no bid of a thief is good enough. */

const dollar = 1_000_000n
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)

export type BookFacts = Prices & { tickMicros: bigint; minSizeUnits: bigint }

/** The price of a take-profit on the grid, which may have become coarser since it was given. */
export function onTick(priceMicros: bigint, { tickMicros }: BookFacts): bigint {
  const above = ((priceMicros + tickMicros - 1n) / tickMicros) * tickMicros
  return min(above, dollar - tickMicros)
}

const marketMicros = ({ triggerMicros, sizeUnits }: Triggered, book: BookFacts): bigint =>
  middleMicros(book, sizeUnits) ?? book.lastPriceMicros ?? triggerMicros

/**
 * The lowest price at which a stop-loss sells. Somebody who empties a thin book and leaves a bid of their own would get
 * the shares for nothing otherwise.
 */
export const stopLeastMicros = (triggered: Triggered, book: BookFacts): bigint =>
  leastPriceMicros(min(triggered.triggerMicros, marketMicros(triggered, book)), book.tickMicros)

type Triggered = { triggerMicros: bigint; sizeUnits: bigint }
type Judgement = { type: 'sell'; priceMicros: bigint } | { type: 'not_reached' | 'far' }

/** Whether a stop-loss sells now: its trigger is reached, and the bid is not far below the price of the market. */
export function judgeStop(triggered: Triggered, book: BookFacts): Judgement {
  const bid = book.bids[0]?.priceMicros
  if (bid === undefined || bid > triggered.triggerMicros) return { type: 'not_reached' }
  const priceMicros = stopLeastMicros(triggered, book)
  return bid < priceMicros ? { type: 'far' } : { type: 'sell', priceMicros }
}

/**
 * Whether a take-profit sells now, and the lowest price at which it does: its trigger, unless that is far below the
 * price of the market. Such an order would sell to a bid of the caller who asked for it, and does not rest.
 */
export function judgeProfit(
  { rests, ...triggered }: Triggered & { rests: boolean },
  book: BookFacts,
): Judgement {
  const ownMicros = onTick(triggered.triggerMicros, book)
  const priceMicros = max(ownMicros, leastPriceMicros(marketMicros(triggered, book), book.tickMicros))
  const bid = book.bids[0]?.priceMicros ?? 0n
  const isReached = rests ? priceMicros === ownMicros : bid >= priceMicros
  return isReached ? { type: 'sell', priceMicros } : { type: 'not_reached' }
}

/** Whether a take-profit rests in the book, instead of being watched. */
export const canRest = (triggerMicros: bigint, sizeUnits: bigint, book: BookFacts): boolean =>
  sizeUnits >= book.minSizeUnits &&
  judgeProfit({ triggerMicros, sizeUnits, rests: true }, book).type === 'sell'
