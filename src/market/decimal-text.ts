import { decimalOfSource } from '#kernel/money/money.ts'

const significantDigits = 12
const placesMax = 18

/**
 * Converts a float to decimal text of twelve digits, which is more than any input has; undefined if it is no
 * number.
 */
export function decimalText(value: number | undefined): string | undefined {
  if (value === undefined || !Number.isFinite(value)) return undefined
  const source = value.toPrecision(significantDigits)
  return decimalOfSource(source) ?? decimalOfSource(value.toFixed(placesMax))
}
