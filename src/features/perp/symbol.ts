import { Fault, invalid } from '#kernel/fault.ts'
import type { PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'

/** `BTC`, `hl:perp:BTC`, `BTC-PERP` and `BTC/USDC` are one market; what is shown is the bare symbol. */
export const assetKey = (symbol: string): string => `hl:perp:${symbol}`

const forms = [/^hl:perp:(.+)$/i, /^(.+)-PERP$/i, /^(.+)\/USDC?$/i]

export const bareSymbol = (asset: string): string => {
  for (const form of forms) {
    const found = form.exec(asset)?.[1]
    if (found) return found
  }
  return asset
}

export function findMarket(markets: readonly PerpMarket[], asset: string): PerpMarket | undefined {
  const symbol = bareSymbol(asset)
  const exact = markets.find((market) => market.symbol === symbol)
  if (exact) return exact
  const alike = markets.filter((market) => market.symbol.toLowerCase() === symbol.toLowerCase())
  return alike.length === 1 ? alike[0] : undefined
}

export const reasonOf = (market: PerpMarket): string | null => (market.isDelisted ? 'delisted' : null)

/** A market that trades; anything else is refused before a task exists. */
export function marketNamed(markets: readonly PerpMarket[], asset: string): PerpMarket {
  const market = findMarket(markets, asset)
  if (!market)
    throw invalid('body.asset', 'unsupported_asset', `There is no perpetual market ${asset}`, { asset })
  if (market.isDelisted)
    throw new Fault('market_closed', `${market.symbol} does not trade any more`, {
      extras: { status: 'delisted', reason: 'the venue has taken the market off its list' },
    })
  return market
}
