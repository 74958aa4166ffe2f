import {
  canonicalDecimal,
  fixedPointDecimals,
  fixedPointOne,
  fromFixedPoint,
  mulDiv,
  rescale,
  toFixedPoint,
  usdDecimals,
} from '#kernel/money/money.ts'

/** Computes the venue's ticks and lots on decimal text, without floats. */

export type Grid = {
  sizeDecimals: number
  /** The most decimals of a price; whole numbers are always allowed. */
  priceDecimals: number
}
export type Direction = 'down' | 'up'

const figures = 5
export const priceDecimalsOf = (kind: 'perp' | 'spot', sizeDecimals: number): number =>
  Math.max(0, (kind === 'perp' ? 6 : 8) - sizeDecimals)

/** Returns the decimals of a price: five significant figures, but at most the market's decimals. */
function placesOf(units: bigint, { priceDecimals }: Grid): number {
  const digits = units.toString().length
  const wholeDigits = digits - fixedPointDecimals
  return Math.max(0, Math.min(priceDecimals, figures - wholeDigits))
}

/** Rounds a price to the nearest tick in the given direction, or to '0' if there is no tick below `text`. */
export function roundPrice(text: string, grid: Grid, direction: Direction): string {
  const units = toFixedPoint(text)
  const step = 10n ** BigInt(fixedPointDecimals - placesOf(units, grid))
  return fromFixedPoint(mulDiv(units, 1n, step, direction) * step)
}

export const isOnTick = (text: string, grid: Grid): boolean =>
  roundPrice(text, grid, 'down') === canonicalDecimal(text) || toFixedPoint(text) % fixedPointOne === 0n

/** Returns the tick size at a price, which is the distance to the next price up. */
export const tickAt = (text: string, grid: Grid): string =>
  fromFixedPoint(10n ** BigInt(fixedPointDecimals - placesOf(toFixedPoint(text), grid)))

/** Rounds a size down to a lot, so that an order never exceeds the requested size; dust becomes '0'. */
export const roundSize = (text: string, grid: Pick<Grid, 'sizeDecimals'>): string =>
  roundToLot(toFixedPoint(text), grid)

function roundToLot(
  units: bigint,
  { sizeDecimals }: Pick<Grid, 'sizeDecimals'>,
  direction: Direction = 'down',
): string {
  const step = 10n ** BigInt(fixedPointDecimals - sizeDecimals)
  return fromFixedPoint(mulDiv(units, 1n, step, direction) * step)
}

export const sizeOfNotional = (
  usd: string,
  price: string,
  grid: Pick<Grid, 'sizeDecimals'>,
  direction: Direction = 'down',
): string =>
  roundToLot(mulDiv(toFixedPoint(usd), fixedPointOne, toFixedPoint(price), direction), grid, direction)

/** Returns the lowest tick at which the size is worth at least `usd`. */
export const minPrice = (usd: string, size: string, grid: Grid): string =>
  roundPrice(fromFixedPoint(mulDiv(toFixedPoint(usd), fixedPointOne, toFixedPoint(size), 'up')), grid, 'up')

/** Returns price * size in micro-dollars. */
export const notionalMicros = (price: string, size: string, direction: Direction = 'down'): bigint =>
  rescale(toFixedPoint(price) * toFixedPoint(size), 2 * fixedPointDecimals, usdDecimals, direction)

type PriceBound = { percent: string; isBuy: boolean; grid: Grid }

/** Returns the price bound of a slippage in percent, rounded to a tick inside the bound. */
export function boundPrice(price: string, { percent, isBuy, grid }: PriceBound): string {
  const hundred = 100n * fixedPointOne
  const share = toFixedPoint(percent)
  const units = mulDiv(
    toFixedPoint(price),
    isBuy ? hundred + share : hundred - share,
    hundred,
    isBuy ? 'down' : 'up',
  )
  return roundPrice(fromFixedPoint(units), grid, isBuy ? 'down' : 'up')
}
