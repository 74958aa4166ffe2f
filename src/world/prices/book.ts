/** Dollars per unit as decimal text. The pools of the chains are made with these prices too. */
const opening: Readonly<Record<string, string>> = {
  BTC: '100000',
  ETH: '3500',
  SOL: '180',
  POL: '0.25',
  LINK: '18',
  UNI: '9',
  ARB: '0.5',
  AERO: '1.2',
  USDC: '1',
  USDT: '1',
  DAI: '1',
  PYUSD: '1',
  JUP: '0.8',
  BONK: '0.00002',
  FRZ: '0.01',
  SEIZE: '0.01',
  TAXED: '0.01',
}

const sameAs: Readonly<Record<string, string>> = {
  WETH: 'ETH',
  WBTC: 'BTC',
  CBBTC: 'BTC',
  WPOL: 'POL',
  WSOL: 'SOL',
  'USDC.E': 'USDC',
}

export const priceKey = (symbol: string): string => {
  const upper = symbol.toUpperCase()
  return sameAs[upper] ?? upper
}

export type PriceBook = {
  usd: (symbol: string) => string | undefined
  set: (symbol: string, usd: string) => void
  all: () => Record<string, string>
}

/** `overrides` is the caller's and is written to, so that what was set can be remembered. */
export const priceBook = (overrides: Record<string, string> = {}): PriceBook => ({
  usd: (symbol) => overrides[priceKey(symbol)] ?? opening[priceKey(symbol)],
  set: (symbol, usd) => {
    overrides[priceKey(symbol)] = usd
  },
  all: () => ({ ...opening, ...overrides }),
})
