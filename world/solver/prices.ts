import { priceSymbol } from '#world/prices/book.ts'
import type { Currency } from './chains.ts'
import { QuoteError } from './errors.ts'
import { parseUsd } from './money.ts'

const timeoutMs = 5_000
const cachedMs = 50

export type Prices = {
  /** Dollars per whole unit; undefined for a currency without a price. */
  priceOf: (currency: Currency) => Promise<bigint | undefined>
  requirePrice: (currency: Currency) => Promise<bigint>
}

/** The price book of the world, which its control server serves. */
export const createPrices = (controlUrl: string): Prices => {
  let cached: { atMs: number; bySymbol: Record<string, string> } | undefined
  const read = async (): Promise<Record<string, string>> => {
    if (cached && performance.now() - cached.atMs < cachedMs) return cached.bySymbol
    const reply = await fetch(`${controlUrl}/prices`, { signal: AbortSignal.timeout(timeoutMs) })
    const { prices } = (await reply.json()) as { prices: Record<string, string> }
    cached = { atMs: performance.now(), bySymbol: prices }
    return prices
  }
  const priceOf: Prices['priceOf'] = async ({ symbol }) => {
    const bySymbol = await read().catch((cause: Error) => {
      throw Object.assign(new QuoteError(500, 'PRICE_FETCH_FAILED', 'Failed to fetch prices'), { cause })
    })
    const text = bySymbol[priceSymbol(symbol)]
    const usd = text === undefined ? 0n : parseUsd(text)
    return usd > 0n ? usd : undefined
  }
  return {
    priceOf,
    requirePrice: async (currency) => {
      const usd = await priceOf(currency)
      if (usd === undefined)
        throw new QuoteError(400, 'UNSUPPORTED_CURRENCY', `No price for ${currency.symbol}`)
      return usd
    },
  }
}
