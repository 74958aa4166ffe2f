import { rounded } from '#kernel/money/figure-format.ts'
import { decimalText } from './decimal-text.ts'

/** The venue takes prices with at most this many significant digits, and whole numbers always. */
const significantDigits = 5

export function priceOnTick(price: number, decimalsMax: number): string | undefined {
  const text = decimalText(price)
  if (text === undefined || !(price > 0)) return undefined
  const [whole = '0', fraction = ''] = text.split('.')
  const zeros = fraction.length - fraction.replace(/^0+/, '').length
  const used = whole === '0' ? -zeros : whole.length
  const places = Math.min(decimalsMax, Math.max(0, significantDigits - used))
  const onTick = rounded(text, places)
  return onTick.includes('.') ? onTick.replace(/\.?0+$/, '') : onTick
}
