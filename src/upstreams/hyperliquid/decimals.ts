import { canonicalDecimal, fromUnits } from '#kernel/money/money.ts'

/** The venue computes with integers and prints floats: `2703997.4500000002`, `1e-7`, and `.0` after whole numbers. */

/** USDC has six decimals on the perp side and eight on the spot side. */
export const usdPlaces = 8
/**
 * Token amounts are rounded to more decimals than any token of the venue has, and fewer than a float error shows.
 */
export const tokenPlaces = 12
const placesMax = 18

const printed = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,2}))?$/
export const decimalPattern = '^-?[0-9]{1,39}(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'

/** Rounds a printed number half up, and throws a RangeError if the text is not a number. */
export function roundedTo(text: string, places: number): string {
  const match = printed.exec(text)
  if (!match) throw new RangeError(`not a number: ${text}`)
  const [, sign = '', whole = '0', fraction = '', exponent = '0'] = match
  const digits = BigInt(whole + fraction)
  const surplus = fraction.length - Number(exponent) - places
  const divisor = 10n ** BigInt(Math.abs(surplus))
  const units = surplus > 0 ? (digits + divisor / 2n) / divisor : digits * divisor
  return fromUnits(sign ? -units : units, places)
}

export const plain = (text: string): string => canonicalDecimal(text) ?? roundedTo(text, placesMax)
export const plainOrNull = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : plain(text)
export const roundUsd = (text: string): string => roundedTo(text, usdPlaces)
export const amountOf = (text: string): string => roundedTo(text, tokenPlaces)
