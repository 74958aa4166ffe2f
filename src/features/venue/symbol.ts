import { Fault, invalid } from '#kernel/fault.ts'

/** `BTC`, `hl:perp:BTC`, `BTC-PERP` and `BTC/USDC` are one market of its kind; what is shown is the bare symbol. */

export type MarketKind = 'perp' | 'spot'

export const assetKey = (kind: MarketKind, symbol: string): string => `hl:${kind}:${symbol}`

const forms = {
  perp: [/^hl:perp:(.+)$/i, /^(.+)-PERP$/i, /^(.+)\/USDC?$/i],
  spot: [/^hl:spot:(.+)$/i, /^(.+)\/USDC?$/i],
} as const
const names = { perp: 'perpetual', spot: 'spot' } as const

export const bareSymbol = (kind: MarketKind, asset: string): string => {
  for (const form of forms[kind]) {
    const found = form.exec(asset)?.[1]
    if (found) return found
  }
  return asset
}

/** Exactly, or else by a spelling that leaves only one. */
export function findMarket<M extends { symbol: string }>(
  kind: MarketKind,
  markets: readonly M[],
  asset: string,
): M | undefined {
  const symbol = bareSymbol(kind, asset)
  const exact = markets.find((market) => market.symbol === symbol)
  if (exact) return exact
  const alike = markets.filter((market) => market.symbol.toLowerCase() === symbol.toLowerCase())
  return alike.length === 1 ? alike[0] : undefined
}

export const reasonOf = ({ isDelisted }: { isDelisted?: boolean }): string | null =>
  isDelisted ? 'delisted' : null

/** A market that trades; anything else is refused before a task exists. */
export function marketNamed<M extends { symbol: string; isDelisted?: boolean }>(
  kind: MarketKind,
  markets: readonly M[],
  asset: string,
): M {
  const market = findMarket(kind, markets, asset)
  if (!market)
    throw invalid('body.asset', 'unsupported_asset', `There is no ${names[kind]} market ${asset}`, { asset })
  if (market.isDelisted)
    throw new Fault('market_closed', `${market.symbol} does not trade any more`, {
      extras: { status: 'delisted', reason: 'the venue has taken the market off its list' },
    })
  return market
}
