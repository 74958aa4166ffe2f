import { Fault, invalid } from '#kernel/fault.ts'

/**
 * `BTC`, `hl:perp:BTC`, `BTC-PERP`, `BTC-USD`, `BTC/USDC` and `BTC/USDC:USDC` are one market of its kind, and on the
 * spot side so are `UBTC` and the venue's own name, such as `@142`; what is shown is the bare symbol.
 */

export type MarketKind = 'perp' | 'spot'

export const assetKey = (kind: MarketKind, symbol: string): string => `hl:${kind}:${symbol}`

const forms = {
  perp: [/^hl:perp:(.+)$/i, /^(.+)-PERP$/i, /^(.+)[/-]USDC?(?::USDC?)?$/i],
  spot: [/^hl:spot:(.+)$/i, /^(.+)[/-]USDC?$/i],
} as const
const names = { perp: 'perpetual', spot: 'spot' } as const

export const bareSymbol = (kind: MarketKind, asset: string): string => {
  for (const form of forms[kind]) {
    const found = form.exec(asset)?.[1]
    if (found) return found
  }
  return asset
}

/** A spot market is also known by its token, and by the name that the venue gives the pair. */
type MarketNames = { symbol: string; base?: string; coin?: string }

/** Exactly, or else by a spelling that leaves only one. */
export function findMarket<M extends MarketNames>(
  kind: MarketKind,
  markets: readonly M[],
  asset: string,
): M | undefined {
  const symbol = bareSymbol(kind, asset)
  const exact = markets.find((market) => market.symbol === symbol)
  if (exact) return exact
  const alike = markets.filter((market) => market.symbol.toLowerCase() === symbol.toLowerCase())
  if (alike.length === 1) return alike[0]
  const named = markets.filter(({ base, coin }) =>
    [base, coin].some((name) => name?.toLowerCase() === symbol.toLowerCase()),
  )
  return named.length === 1 ? named[0] : undefined
}

export const closedReason = ({ isDelisted }: { isDelisted?: boolean }): string | null =>
  isDelisted ? 'delisted' : null

/** A market that trades; anything else is refused before a task exists. */
export function requireMarket<M extends MarketNames & { isDelisted?: boolean }>(
  kind: MarketKind,
  markets: readonly M[],
  asset: string,
): M {
  const market = findMarket(kind, markets, asset)
  if (!market)
    throw invalid('asset', 'unsupported_asset', `There is no ${names[kind]} market ${asset}`, { asset })
  if (market.isDelisted)
    throw new Fault('market_closed', `${market.symbol} does not trade any more`, {
      extras: { status: 'delisted', reason: 'the venue has taken the market off its list' },
    })
  return market
}
