import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits } from '#kernel/money/money.ts'
import type { OrderTerms } from '#kernel/money/prediction-venue.ts'

/**
 * The amounts of an order on the market's grid. Prices have the places of the tick, shares of limits and sales and the
 * dollars of market buys have two, and the other amount has as many as both together.
 * https://docs.polymarket.com/trading/orders/create#amounts
 */

export type OrderAmounts = {
  makerUnits: bigint
  takerUnits: bigint
  priceMicros: bigint
  sizeUnits: bigint
}

const dollar = 1_000_000n
const hundredth = 10_000n

/** The ticks of the venue in micro-dollars, with the places of the amount that is not given. */
const amountPlaces: ReadonlyMap<bigint, bigint> = new Map([
  [100_000n, 3n],
  [10_000n, 4n],
  [5_000n, 5n],
  [2_500n, 6n],
  [1_000n, 5n],
  [100n, 6n],
])

export const isKnownTick = (tickMicros: bigint): boolean => amountPlaces.has(tickMicros)

type Reason = 'tick_invalid' | 'price_invalid' | 'below_minimum'
const unfit = (reason: Reason, sentence: string): Fault =>
  new Fault('validation', sentence, { extras: { reason } })

function assertPrice(priceMicros: bigint, tickMicros: bigint): void {
  const highest = dollar - tickMicros
  if (priceMicros < tickMicros || priceMicros > highest)
    throw unfit(
      'price_invalid',
      `The price must be between ${fromUnits(tickMicros, 6)} and ${fromUnits(highest, 6)}`,
    )
  if (priceMicros % tickMicros !== 0n)
    throw unfit('tick_invalid', `The price must be a multiple of ${fromUnits(tickMicros, 6)}`)
}

const downTo = (units: bigint, step: bigint): bigint => units - (units % step)

/** The bound of a market order on the grid, which may have become coarser since: never a worse price than it allows. */
function boundOnTick({ side, worstPriceMicros }: MarketTerms, tickMicros: bigint): bigint {
  const below = downTo(worstPriceMicros, tickMicros)
  return side === 'buy' || below === worstPriceMicros ? below : below + tickMicros
}

/** The cash of whole hundredths of a share is exact at every tick. */
const cashOf = (sizeUnits: bigint, priceMicros: bigint): bigint => (sizeUnits * priceMicros) / dollar

type MarketTerms = Extract<OrderTerms, { type: 'market' }>
type Grid = { tickMicros: bigint; minSizeUnits: bigint }

/**
 * Rounds down what the order gives. A market buy asks for no more shares than its dollars buy at the worst price, so
 * that it can fill at this price.
 */
export function orderAmounts(terms: OrderTerms, { tickMicros, minSizeUnits }: Grid): OrderAmounts {
  const places = amountPlaces.get(tickMicros)
  if (places === undefined)
    throw new Fault('upstream_changed', `Polymarket has an unknown tick: ${fromUnits(tickMicros, 6)}`)
  const priceMicros = terms.type === 'limit' ? terms.priceMicros : boundOnTick(terms, tickMicros)
  assertPrice(priceMicros, tickMicros)
  if (terms.type === 'market' && terms.side === 'buy') {
    const cash = downTo(terms.cashUnits, hundredth)
    const size = downTo((cash * dollar) / priceMicros, 10n ** (6n - places))
    if (cash <= 0n) throw unfit('below_minimum', 'The amount must be at least 0.01 dollars')
    return { makerUnits: cash, takerUnits: size, priceMicros, sizeUnits: size }
  }
  const size = downTo(terms.sizeUnits, hundredth)
  const least = terms.type === 'limit' && minSizeUnits > hundredth ? minSizeUnits : hundredth
  if (size < least)
    throw unfit('below_minimum', `The market takes no orders below ${fromUnits(least, 6)} shares`)
  const cash = cashOf(size, priceMicros)
  const sides =
    terms.side === 'buy' ? { makerUnits: cash, takerUnits: size } : { makerUnits: size, takerUnits: cash }
  return { ...sides, priceMicros, sizeUnits: size }
}
