import { canonicalDecimal, fromUnits, mulDiv, toUnits } from '#kernel/money.ts'

/** The venue's ticks and lots, computed on decimal text without floats. */

export type Grid = {
  sizeDecimals: number
  /** Maximum decimals of a price; whole numbers are always allowed. */
  priceDecimals: number
}
export type Direction = 'down' | 'up'

const figures = 5
/** Large enough for every decimal in use. */
const scale = 18
export const priceDecimalsOf = (kind: 'perp' | 'spot', sizeDecimals: number): number =>
  Math.max(0, (kind === 'perp' ? 6 : 8) - sizeDecimals)

/** Decimals of a price: five significant figures, at most the market's decimals. */
function placesOf(units: bigint, { priceDecimals }: Grid): number {
  const digits = units.toString().length
  const wholeDigits = digits - scale
  return Math.max(0, Math.min(priceDecimals, figures - wholeDigits))
}

/** The nearest tick in the given direction; '0' where no tick exists below `text`. */
export function roundPrice(text: string, grid: Grid, direction: Direction): string {
  const units = toUnits(text, scale)
  const step = 10n ** BigInt(scale - placesOf(units, grid))
  return fromUnits(mulDiv(units, 1n, step, direction) * step, scale)
}

export const isOnTick = (text: string, grid: Grid): boolean =>
  roundPrice(text, grid, 'down') === canonicalDecimal(text) ||
  toUnits(text, scale) % 10n ** BigInt(scale) === 0n

/** The distance to the next price up. */
export const tickAt = (text: string, grid: Grid): string =>
  fromUnits(10n ** BigInt(scale - placesOf(toUnits(text, scale), grid)), scale)

/** Rounds down, so that an order never exceeds the requested size; dust becomes '0'. */
export const roundSize = (text: string, grid: Pick<Grid, 'sizeDecimals'>): string =>
  roundToLot(toUnits(text, scale), grid)

function roundToLot(
  units: bigint,
  { sizeDecimals }: Pick<Grid, 'sizeDecimals'>,
  direction: Direction = 'down',
): string {
  const step = 10n ** BigInt(scale - sizeDecimals)
  return fromUnits(mulDiv(units, 1n, step, direction) * step, scale)
}

export const sizeOfNotional = (
  usd: string,
  price: string,
  grid: Pick<Grid, 'sizeDecimals'>,
  direction: Direction = 'down',
): string =>
  roundToLot(
    mulDiv(toUnits(usd, scale), 10n ** BigInt(scale), toUnits(price, scale), direction),
    grid,
    direction,
  )

/** The lowest tick at which the size is worth at least `usd`. */
export const minPrice = (usd: string, size: string, grid: Grid): string =>
  roundPrice(
    fromUnits(mulDiv(toUnits(usd, scale), 10n ** BigInt(scale), toUnits(size, scale), 'up'), scale),
    grid,
    'up',
  )

/** price * size in micro-dollars. */
export const notionalMicros = (price: string, size: string, direction: Direction = 'down'): bigint =>
  mulDiv(toUnits(price, scale) * toUnits(size, scale), 1n, 10n ** BigInt(2 * scale - 6), direction)

/** The price bound of a slippage in percent, rounded to a tick inside the bound. */
export function boundPrice(price: string, percent: string, isBuy: boolean, grid: Grid): string {
  const hundred = 100n * 10n ** BigInt(scale)
  const share = toUnits(percent, scale)
  const units = mulDiv(
    toUnits(price, scale),
    isBuy ? hundred + share : hundred - share,
    hundred,
    isBuy ? 'down' : 'up',
  )
  return roundPrice(fromUnits(units, scale), grid, isBuy ? 'down' : 'up')
}
