import { decimalOfSource } from '#kernel/money/money.ts'

const significantDigits = 12
const placesMax = 18

/** Returns undefined if the value is no number. Twelve digits are more than any input has. */
export function decimalText(value: number | undefined): string | undefined {
  if (value === undefined || !Number.isFinite(value)) return undefined
  const source = value.toPrecision(significantDigits)
  return decimalOfSource(source) ?? decimalOfSource(value.toFixed(placesMax))
}
