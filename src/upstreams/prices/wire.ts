import { decimalOfSource } from '#kernel/money/money.ts'
import { isRecord } from '#kernel/wire/json.ts'

/** Reads DefiLlama's `coins`; prices are read from the source text of their numbers. */

export type Price = { price: string; at: Date; symbol: string | null }

type Rule = { now: Date; confidenceMin: number; ageMaxMs: number }

/** Returns the prices by key, or undefined if the body is malformed. An absent key is no price, never zero. */
export function pricesOf(body: string, rule: Rule): Map<string, Price> | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(body, (key, value, context?: { source?: string }) =>
      key === 'price' && typeof value === 'number' ? (context?.source ?? '') : value,
    )
  } catch {
    return undefined
  }
  if (!isRecord(parsed) || !isRecord(parsed.coins)) return undefined
  const prices = new Map<string, Price>()
  for (const [key, coin] of Object.entries(parsed.coins)) {
    const price = isRecord(coin) ? priceOf(coin, rule) : undefined
    if (price) prices.set(key.toLowerCase(), price)
  }
  return prices
}

function priceOf(coin: Record<string, unknown>, { now, confidenceMin, ageMaxMs }: Rule): Price | undefined {
  const { price, timestamp, confidence, symbol } = coin
  if (typeof price !== 'string' || typeof timestamp !== 'number' || typeof confidence !== 'number')
    return undefined
  const at = new Date(timestamp * 1_000)
  if (confidence < confidenceMin || now.getTime() - at.getTime() > ageMaxMs) return undefined
  const text = decimalOfSource(shortened(price))
  return text === undefined || /^-|^0$/.test(text)
    ? undefined
    : { price: text, at, symbol: typeof symbol === 'string' ? symbol : null }
}

/** Cuts a price to 18 decimal places, so that even a billionth of a cent keeps its first digits. */
function shortened(source: string): string {
  const [, digits = '', exponent = ''] = /^([\d.]+)((?:[eE].*)?)$/.exec(source) ?? []
  const [whole = '', fraction = ''] = digits.split('.')
  const places = Math.max(0, 18 + Math.min(0, Number(exponent.slice(1) || 0)))
  return fraction.length > places
    ? `${whole}${places > 0 ? `.${fraction.slice(0, places)}` : ''}${exponent}`
    : source
}
