import type { Grid } from './ticks.ts'

export type Tier = { lowerBoundUsd: number; maxLeverage: number }

export type Perp = Grid & {
  kind: 'perp'
  asset: number
  coin: string
  maxLeverage: number
  marginTable: number
  tiers: readonly Tier[]
  onlyIsolated: boolean
  delisted: boolean
  startUsd: number
}

export type Token = {
  name: string
  fullName: string | null
  index: number
  sizeDecimals: number
  weiDecimals: number
  tokenId: string
  canonical: boolean
  supply: number
}

export type Spot = Grid & {
  kind: 'spot'
  asset: number
  index: number
  coin: string
  base: Token
  quote: Token
  canonical: boolean
  startUsd: number
}

export type Market = Perp | Spot

export const spotOffset = 10_000

/** Largest market order by the maximum leverage of the market; a limit order may be ten times that. */
export const maxMarketOrderUsd: readonly (readonly [leverage: number, usd: number])[] = [
  [40, 15_000_000],
  [25, 5_000_000],
  [20, 2_000_000],
  [3, 500_000],
]

export const maxOrderUsd = ({ maxLeverage }: Perp, { isMarketOrder }: { isMarketOrder: boolean }): number => {
  const [, usd] = maxMarketOrderUsd.find(([leverage]) => maxLeverage >= leverage) ?? [0, 500_000]
  return isMarketOrder ? usd : usd * 10
}

/** Tables above 50 are tiered, the id of the others is their only leverage. */
export const marginTables: Record<number, { description: string; tiers: readonly Tier[] }> = {
  3: { description: '', tiers: [{ lowerBoundUsd: 0, maxLeverage: 3 }] },
  10: { description: '', tiers: [{ lowerBoundUsd: 0, maxLeverage: 10 }] },
  20: { description: '', tiers: [{ lowerBoundUsd: 0, maxLeverage: 20 }] },
  51: {
    description: 'tiered 10x',
    tiers: [
      { lowerBoundUsd: 0, maxLeverage: 10 },
      { lowerBoundUsd: 3_000_000, maxLeverage: 5 },
    ],
  },
  54: {
    description: 'tiered 20x',
    tiers: [
      { lowerBoundUsd: 0, maxLeverage: 20 },
      { lowerBoundUsd: 40_000_000, maxLeverage: 10 },
    ],
  },
  55: {
    description: 'tiered 25x',
    tiers: [
      { lowerBoundUsd: 0, maxLeverage: 25 },
      { lowerBoundUsd: 100_000_000, maxLeverage: 15 },
    ],
  },
  56: {
    description: 'tiered 40x',
    tiers: [
      { lowerBoundUsd: 0, maxLeverage: 40 },
      { lowerBoundUsd: 150_000_000, maxLeverage: 20 },
    ],
  },
}

type Listing = [
  coin: string,
  sizeDecimals: number,
  table: number,
  startUsd: number,
  mark?: 'isolated' | 'delisted',
]

const listings: readonly Listing[] = [
  ['BTC', 5, 56, 104_500],
  ['ETH', 4, 55, 3_420],
  ['SOL', 2, 54, 172],
  ['ARB', 1, 51, 0.412],
  ['DOGE', 0, 51, 0.1834],
  ['kPEPE', 0, 51, 0.01127],
  ['HYPE', 2, 51, 38.6],
  ['LINK', 1, 51, 17.9],
  ['AVAX', 2, 51, 24.3],
  ['XRP', 0, 20, 2.31],
  ['HPOS', 0, 3, 0.0731, 'isolated'],
  ['MATIC', 1, 10, 0.3762, 'delisted'],
]

export const perps: readonly Perp[] = listings.map(([coin, sizeDecimals, table, startUsd, mark], asset) => {
  const { tiers } = marginTables[table] as { tiers: readonly Tier[] }
  return {
    kind: 'perp',
    asset,
    coin,
    sizeDecimals,
    priceDecimals: 6,
    maxLeverage: (tiers[0] as Tier).maxLeverage,
    marginTable: table,
    tiers,
    onlyIsolated: mark === 'isolated',
    delisted: mark === 'delisted',
    startUsd,
  }
})

const token = (
  index: number,
  name: string,
  fullName: string | null,
  {
    sizeDecimals,
    weiDecimals,
    tokenId,
    supply,
  }: { sizeDecimals: number; weiDecimals: number; tokenId: string; supply: number },
): Token => ({ name, fullName, index, sizeDecimals, weiDecimals, tokenId, canonical: index < 2, supply })

export const tokens: readonly Token[] = [
  token(0, 'USDC', null, {
    sizeDecimals: 8,
    weiDecimals: 8,
    tokenId: '0x6d1e7cde53ba9467b783cb7c530ce054',
    supply: 5_000_000_000,
  }),
  token(1, 'PURR', null, {
    sizeDecimals: 0,
    weiDecimals: 5,
    tokenId: '0xc1fb593aeffbeb02f85e0308e9956a90',
    supply: 596_500_000,
  }),
  token(2, 'HYPE', 'Hyperliquid', {
    sizeDecimals: 2,
    weiDecimals: 8,
    tokenId: '0x0d01dc56dcaaca66ad901c959b4011ec',
    supply: 999_990_000,
  }),
  token(3, 'UBTC', 'Unit Bitcoin', {
    sizeDecimals: 5,
    weiDecimals: 10,
    tokenId: '0x8f254b963e8468305d409b33aa137c67',
    supply: 21_000_000,
  }),
  token(4, 'UETH', 'Unit Ethereum', {
    sizeDecimals: 4,
    weiDecimals: 9,
    tokenId: '0xe1edd30daaf5caac3fe63569e24748da',
    supply: 120_000_000,
  }),
]

export const usdc = tokens[0] as Token

const pairs: readonly [base: number, startUsd: number][] = [
  [1, 0.1752],
  [2, 38.6],
  [3, 104_500],
  [4, 3_420],
]

export const spots: readonly Spot[] = pairs.map(([index, startUsd], at) => {
  const base = tokens[index] as Token
  return {
    kind: 'spot',
    asset: spotOffset + at,
    index: at,
    coin: at === 0 ? 'PURR/USDC' : `@${at}`,
    base,
    quote: usdc,
    canonical: at === 0,
    sizeDecimals: base.sizeDecimals,
    priceDecimals: 8,
    startUsd,
  }
})

export const markets: readonly Market[] = [...perps, ...spots]

const byAsset = new Map(markets.map((market) => [market.asset, market]))
const byCoin = new Map(markets.map((market) => [market.coin, market]))

export const marketOf = (asset: number): Market | undefined => byAsset.get(asset)
export const marketNamed = (coin: string): Market | undefined => byCoin.get(coin)
export const perpOf = (asset: number): Perp => byAsset.get(asset) as Perp

/** A token of a transfer is written `NAME:0xid`. */
export const tokenNamed = (text: string): Token | undefined => {
  const [name, id] = text.split(':')
  return tokens.find((known) => known.name === name && known.tokenId === id?.toLowerCase())
}
