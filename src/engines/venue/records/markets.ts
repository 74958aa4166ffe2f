import { Fault, invalid } from '#kernel/contract/fault.ts'
import { alternatives, nearest } from '#kernel/contract/nearest-names.ts'

/**
 * `BTC`, `hl:perp:BTC`, `BTC-PERP`, `BTC-USD`, `BTC/USDC` and `BTC/USDC:USDC` name the same perp market. A spot
 * market also accepts `UBTC` and the venue's pair name, such as `@142`. Views show the bare symbol.
 */

export type MarketKind = 'perp' | 'spot'

export const assetKey = (kind: MarketKind, symbol: string): string => `hl:${kind}:${symbol}`

const forms = {
  perp: [/^hl:perp:(.+)$/i, /^(.+)-PERP$/i, /^(.+)[/-]USDC?(?::USDC?)?$/i],
  spot: [/^hl:spot:(.+)$/i, /^(.+)[/-]USDC?$/i],
} as const
const listedBy = { perp: 'perp_markets', spot: 'spot_venue_markets' } as const
const names = { perp: 'perpetual', spot: 'spot' } as const

export const bareSymbol = (kind: MarketKind, asset: string): string => {
  for (const form of forms[kind]) {
    const found = form.exec(asset)?.[1]
    if (found) return found
  }
  return asset
}

/** The names of a market; a spot market also has its token, `base`, and the venue's pair name, `coin`. */
type MarketNames = { symbol: string; base?: string; coin?: string }

/** Returns the market of a name: an exact match, or else an unambiguous match that ignores case. */
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

/** Returns the message for an unknown market, which names the markets that were probably meant. */
function unknownMarket(kind: MarketKind, markets: readonly MarketNames[], asset: string): string {
  const symbols = markets.map(({ symbol, base }) => base ?? symbol)
  const symbol = asset.replace(/[-_/:]?(?:USD[TC]?|PERP)$/i, '')
  const own = symbols.find((each) => each.toLowerCase() === symbol.toLowerCase())
  const meant = own === undefined ? nearest(bareSymbol(kind, asset), new Set(symbols)) : [own]
  const remedy =
    meant.length > 0 ? `did you mean ${alternatives(meant)}?` : `\`${listedBy[kind]}\` lists them`
  return `There is no ${names[kind]} market ${asset}; ${remedy}`
}

export const closedReason = ({ isDelisted }: { isDelisted?: boolean }): string | null =>
  isDelisted ? 'delisted' : null

type TradedMarket = MarketNames & { isDelisted?: boolean; isStale?: boolean }
type ReadMarkets<M> = { markets: readonly M[]; isComplete: boolean }

/** Returns the markets of the venue's last reply, for views. */
export function currentMarkets<M extends TradedMarket>({
  markets,
  failure,
}: {
  markets: readonly M[]
  failure?: Fault
}): M[] {
  if (failure) throw failure
  return markets.filter(({ isStale }) => !isStale)
}

const unreadMarket = (asset: string): Fault =>
  new Fault(
    'unavailable',
    `The venue does not show the market ${asset} readably now; try again in a few seconds`,
    {
      extras: { retry_after: 5 },
    },
  )

/** Returns a market with present prices. An exit uses `requireKnownMarket`, since old data must not delay it. */
export function requireMarket<M extends TradedMarket>(
  kind: MarketKind,
  list: ReadMarkets<M>,
  asset: string,
): M {
  const market = requireKnownMarket(kind, list, asset)
  if (market.isStale) throw unreadMarket(market.symbol)
  return market
}

/** Returns a market that may be known from an earlier reply; throws if it is missing or delisted. */
export function requireKnownMarket<M extends TradedMarket>(
  kind: MarketKind,
  { markets, isComplete }: ReadMarkets<M>,
  asset: string,
): M {
  const market = findMarket(kind, markets, asset)
  if (!market && !isComplete) throw unreadMarket(asset)
  if (!market) throw invalid('asset', 'unsupported_asset', unknownMarket(kind, markets, asset), { asset })
  if (market.isDelisted)
    throw new Fault('market_closed', `${market.symbol} is no longer traded at the venue`, {
      extras: { status: 'delisted', reason: 'the venue has delisted the market' },
    })
  return market
}
