import type { OpenOrder } from '#upstreams/hyperliquid/hyperliquid.ts'

export const orderView = (order: OpenOrder, tasks: ReadonlyMap<string, string>) => ({
  order_id: String(order.orderId),
  oid: String(order.orderId),
  cloid: order.cloid,
  asset: order.symbol,
  side: order.isBuy ? ('buy' as const) : ('sell' as const),
  size: order.size,
  orig_size: order.origSize,
  limit_price: order.price,
  order_type: order.kind,
  tif: order.tif,
  reduce_only: order.reduceOnly,
  is_trigger: order.trigger !== null,
  trigger_price: order.trigger?.price ?? null,
  trigger_condition: order.trigger?.condition ?? null,
  tpsl: order.trigger?.leg ?? null,
  is_position_tpsl: order.isPositionTpsl,
  parent_order_id: order.parentId === null ? null : String(order.parentId),
  status: order.parentId === null ? ('open' as const) : ('waiting' as const),
  task_id: (order.cloid && tasks.get(order.cloid)) ?? null,
  timestamp: new Date(order.atMs).toISOString(),
})

export const pricesMaxAgeMs = 2_000
