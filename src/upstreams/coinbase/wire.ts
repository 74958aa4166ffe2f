import { canonicalDecimal } from '#kernel/money/money.ts'
import { isRecord, parseJson } from '#kernel/wire/json.ts'

/** Returns the price that a reply states, or undefined if the reply is malformed or prices another pair. */
export function spotPriceOf(body: string, base: string, currency: string): string | undefined {
  const parsed = parseJson(body)
  if (!isRecord(parsed) || !isRecord(parsed.data)) return undefined
  const { amount, base: pricedCoin, currency: pricedIn } = parsed.data
  if (typeof amount !== 'string' || pricedIn !== currency) return undefined
  // Older replies of Coinbase do not name the base coin, so only a reply that names another coin is refused.
  if (pricedCoin !== undefined && pricedCoin !== base) return undefined
  const price = canonicalDecimal(amount)
  return price === undefined || /^-|^0$/.test(price) ? undefined : price
}
