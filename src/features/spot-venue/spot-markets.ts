import { requireKnownMarket, requireMarket } from '#engines/venue/records/markets.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Hyperliquid, SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'

export const quoteToken = 'USDC'

export async function usdcMarkets(venue: Pick<Hyperliquid, 'spots'>, maxAgeMs?: number) {
  const list = await venue.spots(maxAgeMs)
  return { ...list, markets: list.markets.filter(({ quote }) => quote === quoteToken) }
}

export async function requireSpotMarket(
  venue: Pick<Hyperliquid, 'spots'>,
  asset: string,
): Promise<SpotMarket> {
  return requireMarket('spot', await usdcMarkets(venue), asset)
}

/** Finds a market for an exit, which a stale list of markets must not prevent. */
export async function requireKnownSpotMarket(
  venue: Pick<Hyperliquid, 'spots'>,
  asset: string,
): Promise<SpotMarket> {
  return requireKnownMarket('spot', await usdcMarkets(venue), asset)
}

export function midOf(mids: ReadonlyMap<string, string>, market: SpotMarket): string {
  const mid = mids.get(market.coin) ?? market.midPrice
  if (mid) return mid
  throw new Fault('market_closed', `${market.symbol} has no quotes now; try again later`, {
    extras: { status: 'no_quotes', reason: 'the order book of the market is empty' },
  })
}
