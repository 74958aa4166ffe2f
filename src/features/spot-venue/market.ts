import { requireKnownMarket, requireMarket } from '#engines/venue/records/markets.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { decimalPlaces, fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
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

type Balance = { coin: string; total: string; hold: string }

/** Returns the total of a balance minus the amount that open orders reserve. */
export function freeOf(balances: readonly Balance[], coin: string): string {
  const balance = balances.find((each) => each.coin === coin)
  if (!balance) return '0'
  const free = toFixedPoint(balance.total) - toFixedPoint(balance.hold)
  return free > 0n ? fromFixedPoint(free) : '0'
}

export const lesser = (a: string, b: string): string => (compareDecimals(a, b) < 0 ? a : b)

export function midOf(mids: ReadonlyMap<string, string>, market: SpotMarket): string {
  const mid = mids.get(market.coin) ?? market.midPrice
  if (mid) return mid
  throw new Fault('market_closed', `${market.symbol} has no quotes now; try again later`, {
    extras: { status: 'no_quotes', reason: 'the order book of the market is empty' },
  })
}

type HoldingShortage = { what: string; required: string; free: string; note?: string }

/** Returns the fault of a missing balance; free dust may have more decimals than a size, so all are shown. */
export function insufficientHolding(
  { symbol, sizeDecimals }: SpotMarket,
  { free, ...shortage }: HoldingShortage,
): Fault {
  const decimals = Math.max(sizeDecimals, decimalPlaces(free))
  return insufficientBalance({ symbol, decimals }, { ...shortage, available: free })
}

export const smallestLot = (lot: string): string => `the smallest lot is ${lot}`
