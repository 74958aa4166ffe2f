import {
  decimalPlaces,
  fixedPointDecimals,
  fixedPointOne,
  fromUnits,
  fullBps,
  mulDiv,
  toFixedPoint,
} from '#kernel/money/money.ts'

/** Computes trigger prices with decimal text and whole numbers only. */

const significantDigits = 8
const placesMin = 2

/** Returns the decimal places of prices derived from a reference: for eight digits, and for cents at least. */
export function placesOf(reference: string): number {
  const units = toFixedPoint(reference)
  const leading = units.toString().length - 1 - fixedPointDecimals
  const wanted = Math.max(significantDigits - 1 - leading, placesMin)
  return Math.min(Math.max(wanted, decimalPlaces(reference)), fixedPointDecimals)
}

function scaledUp(reference: string, factor: bigint): string {
  const places = placesOf(reference)
  const divisor = fixedPointOne * 10n ** BigInt(fixedPointDecimals - places)
  return fromUnits(mulDiv(toFixedPoint(reference) * factor, 1n, divisor, 'up'), places)
}

/** Returns the price of a stop, rounded up, so that the stop never fires later than at the exact price. */
export const stopPrice = (reference: string, fraction: string): string =>
  scaledUp(reference, fixedPointOne - toFixedPoint(fraction))

/** Returns the price of a take-profit, rounded up, so that it is never less than the exact price. */
export const profitPrice = (reference: string, fraction: string): string =>
  scaledUp(reference, fixedPointOne + toFixedPoint(fraction))

/** Returns the part of a balance that a leg sells, rounded down so that it never exceeds the balance. */
export const fractionOf = (units: bigint, fraction: string): bigint =>
  mulDiv(units, toFixedPoint(fraction), fixedPointOne)

const classBits = 3n

/**
 * Returns the smallest amount of the size class of `units`. The amounts of a class differ by less than a quarter, and
 * share one quote.
 */
export function sizeClass(units: bigint): bigint {
  const bits = BigInt(units.toString(2).length)
  const dropped = bits > classBits ? bits - classBits : 0n
  return (units >> dropped) << dropped
}

export type PricedAmount = { units: bigint; decimals: number }

/** Returns the price of a token in dollars, rounded down, if the `other` amount was paid or received for it. */
export function unitPrice(token: PricedAmount, other: PricedAmount & { price: string }): string {
  const dollars = other.units * toFixedPoint(other.price) * 10n ** BigInt(token.decimals)
  return fromUnits(mulDiv(dollars, 1n, token.units * 10n ** BigInt(other.decimals)), fixedPointDecimals)
}

export function bandAround(price: string, bandBps: bigint): { low: string; high: string } {
  const units = toFixedPoint(price)
  return {
    low: fromUnits(mulDiv(units, fullBps - bandBps, fullBps), fixedPointDecimals),
    high: fromUnits(mulDiv(units, fullBps + bandBps, fullBps, 'up'), fixedPointDecimals),
  }
}
