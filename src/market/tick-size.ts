import { rounded } from '#kernel/money/figure-format.ts'
import { decimalText } from './decimal-text.ts'

/** The venue takes prices with at most this many significant digits, and whole numbers always. */
const significantDigits = 5

/** Returns how many decimals a price may have. */
function placesOf(text: string, decimalsMax: number): number {
  const [whole = '0', fraction = ''] = text.split('.')
  const zeros = fraction.length - fraction.replace(/^0+/, '').length
  const used = whole === '0' ? -zeros : whole.length
  return Math.min(decimalsMax, Math.max(0, significantDigits - used))
}

export function priceOnTick(price: number, decimalsMax: number): string | undefined {
  const text = decimalText(price)
  if (text === undefined || !(price > 0)) return undefined
  const onTick = rounded(text, placesOf(text, decimalsMax))
  return onTick.includes('.') ? onTick.replace(/\.?0+$/, '') : onTick
}

/** Returns the distance to the next price up; infinite where the number is no price. */
export function tickSizeAt(price: number, decimalsMax: number): number {
  const text = decimalText(price)
  if (text === undefined || !(price > 0)) return Number.POSITIVE_INFINITY
  return 10 ** -placesOf(text, decimalsMax)
}
