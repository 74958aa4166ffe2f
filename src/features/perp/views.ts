import { assetKey, closedReason } from '#engines/venue/records/markets.ts'
import { fromFixedPoint, fromUnits, toFixedPoint } from '#kernel/money/money.ts'
import type {
  Account,
  OpenOrder,
  PerpMarket,
  Position,
  SpotBalance,
} from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpLimits } from './limits.ts'

export const marketView = (market: PerpMarket, chainId: string, { minOrderUsd }: PerpLimits) => ({
  symbol: market.symbol,
  asset_key: assetKey('perp', market.symbol),
  name: `${market.symbol} perpetual`,
  chain_id: chainId,
  size_decimals: market.sizeDecimals,
  price_decimals_max: market.priceDecimals,
  max_leverage: market.maxLeverage,
  only_isolated: market.onlyIsolated,
  mark_price: market.markPrice,
  oracle_price: market.oraclePrice,
  mid_price: market.midPrice,
  funding_rate: market.fundingRate,
  open_interest: market.openInterest,
  volume_24h_usd: market.dayVolumeUsd,
  prev_day_price: market.prevDayPrice,
  min_order_usd: minOrderUsd,
  routable: !market.isDelisted,
  reason: closedReason(market),
})

/** The mark price of the venue's valuation, so that price, value and profit are consistent. */
export function markOf(
  { valueUsd, signedSize }: Position,
  market: Pick<PerpMarket, 'priceDecimals'> | undefined,
): string | null {
  const size = toFixedPoint(signedSize.replace('-', ''))
  if (size === 0n) return null
  const places = market?.priceDecimals ?? 6
  const units = (toFixedPoint(valueUsd) * 10n ** BigInt(places) * 2n + size) / (size * 2n)
  return fromUnits(units, places)
}

/** Returns value and free balance of an account in which one balance serves both sides, from its spot state. */
export function unifiedValue(
  spot: readonly SpotBalance[],
): Pick<Account, 'accountValueUsd' | 'withdrawableUsd'> {
  const usdc = spot.find(({ coin }) => coin === 'USDC')
  const total = toFixedPoint(usdc?.total ?? '0')
  const free = total - toFixedPoint(usdc?.hold ?? '0')
  return {
    accountValueUsd: fromFixedPoint(total),
    withdrawableUsd: fromFixedPoint(free > 0n ? free : 0n),
  }
}

export function positionView(position: Position, orders: readonly OpenOrder[], mark: string | null) {
  const isShort = position.signedSize.startsWith('-')
  const exits = (leg: 'tp' | 'sl') =>
    orders
      .filter((order) => order.symbol === position.symbol && order.isBuy === isShort)
      // An exit with a parent order is inactive until its entry is filled, so only exits without a parent count.
      .filter((order) => order.trigger?.leg === leg && order.reduceOnly && order.parentId === null)
      .map(({ orderId }) => String(orderId))
  return {
    asset: position.symbol,
    side: isShort ? ('short' as const) : ('long' as const),
    size: position.signedSize.replace('-', ''),
    entry_price: position.entryPrice,
    mark_price: mark,
    leverage: position.leverage,
    is_cross: position.isCross,
    margin_used_usd: position.marginUsedUsd,
    liquidation_price: position.liquidationPrice,
    unrealized_pnl_usd: position.unrealizedPnlUsd,
    funding_paid_usd: position.fundingPaidUsd,
    tp_oids: exits('tp'),
    sl_oids: exits('sl'),
  }
}

const modes: Readonly<Record<string, 'default' | 'unified' | 'portfolio'>> = {
  default: 'default',
  disabled: 'default',
  unifiedAccount: 'unified',
  portfolioMargin: 'portfolio',
}
export const modeOf = (mode: string) => modes[mode] ?? ('other' as const)
