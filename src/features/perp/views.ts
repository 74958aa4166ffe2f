import { assetKey, reasonOf } from '#features/venue/symbol.ts'
import type { OpenOrder, PerpMarket, Position } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpLimits } from './limits.ts'

/** Markets, orders and positions as they are told. */

export const marketView = (market: PerpMarket, chainId: string, { minOrderUsd }: PerpLimits) => ({
  ...{
    symbol: market.symbol,
    asset_key: assetKey('perp', market.symbol),
    name: `${market.symbol} perpetual`,
  },
  ...{ chain_id: chainId, size_decimals: market.sizeDecimals, price_decimals_max: market.priceDecimals },
  ...{ max_leverage: market.maxLeverage, only_isolated: market.onlyIsolated },
  ...{ mark_price: market.markPrice, oracle_price: market.oraclePrice, mid_price: market.midPrice },
  ...{ funding_rate: market.fundingRate, open_interest: market.openInterest },
  ...{ volume_24h_usd: market.dayVolumeUsd, prev_day_price: market.prevDayPrice },
  ...{ min_order_usd: minOrderUsd, routable: !market.isDelisted, reason: reasonOf(market) },
})

export function positionView(position: Position, orders: readonly OpenOrder[], mark: string | null) {
  const isShort = position.signedSize.startsWith('-')
  const exits = (leg: 'tp' | 'sl') =>
    orders
      .filter((order) => order.symbol === position.symbol && order.isBuy === isShort)
      .filter((order) => order.trigger?.leg === leg && order.reduceOnly)
      .map(({ orderId }) => String(orderId))
  return {
    ...{ asset: position.symbol, side: isShort ? ('short' as const) : ('long' as const) },
    ...{ size: position.signedSize.replace('-', ''), entry_price: position.entryPrice, mark_price: mark },
    ...{ leverage: position.leverage, is_cross: position.isCross },
    ...{ margin_used_usd: position.marginUsedUsd, liquidation_price: position.liquidationPrice },
    ...{ unrealized_pnl_usd: position.unrealizedPnlUsd, funding_paid_usd: position.fundingPaidUsd },
    ...{ tp_oids: exits('tp'), sl_oids: exits('sl') },
  }
}

const modes: Readonly<Record<string, 'default' | 'unified' | 'portfolio'>> = {
  default: 'default',
  disabled: 'default',
  unifiedAccount: 'unified',
  portfolioMargin: 'portfolio',
}
export const modeOf = (mode: string) => modes[mode] ?? ('other' as const)
