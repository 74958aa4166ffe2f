/** Dollars per unit as decimal text. The pools of the chains start with these prices too. */
const initialPrices: Readonly<Record<string, string>> = {
  BTC: '100000',
  ETH: '3500',
  SOL: '180',
  POL: '0.25',
  LINK: '18',
  UNI: '9',
  ARB: '0.5',
  AERO: '1.2',
  JUP: '0.8',
  BONK: '0.00002',
  USDC: '1',
  USDT: '1',
  DAI: '1',
  PYUSD: '1',
  FRZ: '0.01',
  SEIZE: '0.01',
  TAXED: '0.01',
}

const priceAliases: Readonly<Record<string, string>> = {
  WETH: 'ETH',
  WBTC: 'BTC',
  CBBTC: 'BTC',
  WPOL: 'POL',
  WSOL: 'SOL',
  'USDC.E': 'USDC',
}

/** Changes from outside: the price, or its confidence. */
export type Override = {
  price_usd?: string
  /** What the exchange says, where it deviates from the other sources. */
  spot_usd?: string
  confidence?: number
  age_seconds?: number
  listed?: boolean
}
export type Quote = { usd: string; spotUsd: string; confidence: number; ageSeconds: number }
export type PriceBook = {
  /** Undefined for a symbol without a price, or one that was delisted. */
  quote: (symbol: string) => Quote | undefined
  set: (symbol: string, change: Override) => void
  symbols: () => string[]
}

/** The symbol under which the book has the price of a token. */
export const priceSymbol = (symbol: string): string => {
  const upper = symbol.toUpperCase()
  return priceAliases[upper] ?? upper
}

/** `overrides` belongs to the caller and is written to, so that changes can be saved. */
export const priceBook = (overrides: Record<string, Override> = {}): PriceBook => ({
  quote: (symbol) => {
    const key = priceSymbol(symbol)
    const {
      price_usd: usd = initialPrices[key],
      spot_usd: spotUsd = usd ?? '0',
      confidence = 0.99,
      age_seconds = 0,
      listed = true,
    } = overrides[key] ?? {}
    return usd === undefined || !listed ? undefined : { usd, spotUsd, confidence, ageSeconds: age_seconds }
  },
  set: (symbol, change) => {
    overrides[priceSymbol(symbol)] = { ...overrides[priceSymbol(symbol)], ...change }
  },
  symbols: () => [...new Set([...Object.keys(initialPrices), ...Object.keys(overrides)])],
})
