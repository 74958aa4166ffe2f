import { canonicalDecimal } from '#kernel/money/money.ts'
import { isRecord, parseJson } from '#kernel/wire/json.ts'

/** Returns undefined if the body is malformed, or prices another pair. */
export function spotPriceOf(body: string, base: string, currency: string): string | undefined {
  const parsed = parseJson(body)
  if (!isRecord(parsed) || !isRecord(parsed.data)) return undefined
  const { amount, base: pricedCoin, currency: pricedIn } = parsed.data
  if (typeof amount !== 'string' || pricedIn !== currency) return undefined
  // Older replies lack the base.
  if (pricedCoin !== undefined && pricedCoin !== base) return undefined
  const price = canonicalDecimal(amount)
  return price === undefined || /^-|^0$/.test(price) ? undefined : price
}
