import { assetKey } from '#engines/venue/records/markets.ts'
import type { SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { TriggerRow } from './trigger-store.ts'

export const marketView = (market: SpotMarket, minOrderUsd: string) => ({
  symbol: market.symbol,
  base: market.base,
  quote: market.quote,
  asset_key: assetKey('spot', market.symbol),
  price: market.midPrice ?? market.markPrice,
  size_decimals: market.sizeDecimals,
  volume_24h_usd: market.dayVolumeUsd,
  min_order_usd: minOrderUsd,
  routable: market.midPrice !== null,
  reason: market.midPrice === null ? 'no_quotes' : null,
})

const kinds = { tp: 'Take Profit Market', sl: 'Stop Market' } as const
const sides = { tp: 'above', sl: 'below' } as const

/** Shows a trigger held by the gateway in the format of the venue's open orders. */
export function triggerView({ id, input, status, source_task_id, created_at }: TriggerRow, free: string) {
  const { symbol, leg, size, trigger_price, parent_order_id } = input
  return {
    order_id: id,
    oid: id,
    cloid: null,
    asset: symbol,
    side: 'sell' as const,
    size: size ?? free,
    orig_size: size ?? free,
    limit_price: trigger_price,
    order_type: kinds[leg],
    tif: null,
    reduce_only: true,
    is_trigger: true,
    trigger_price,
    trigger_condition: `Price ${sides[leg]} ${trigger_price}`,
    tpsl: leg,
    is_position_tpsl: false,
    status: status === 'waiting' ? ('waiting' as const) : ('open' as const),
    parent_order_id,
    task_id: source_task_id,
    timestamp: created_at.toISOString(),
  }
}
