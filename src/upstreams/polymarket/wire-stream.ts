import * as T from '#kernel/contract/schema.ts'

/** The frames of both sockets. https://docs.polymarket.com/market-data/websocket/market-channel */

const text = T.String()
const number = T.Union([T.String(), T.Number()])
const maybe = <S extends T.TSchema>(schema: S) => T.Optional(T.Union([schema, T.Null()]))

export const FrameHead = T.Object({ event_type: text }, { additionalProperties: true })

const Level = T.Object({ price: text, size: text })
export const BookFrame = T.Object({
  event_type: T.Literal('book'),
  market: text,
  asset_id: text,
  bids: T.Array(Level),
  asks: T.Array(Level),
  timestamp: number,
  hash: maybe(text),
  /** Books of before 2026 lack the grid; the listener then reads over HTTP. */
  min_order_size: number,
  tick_size: number,
  neg_risk: T.Boolean(),
  last_trade_price: maybe(text),
})
const best = { best_bid: maybe(text), best_ask: maybe(text) }
export const PriceChangeFrame = T.Object({
  event_type: T.Literal('price_change'),
  market: text,
  price_changes: T.Array(T.Object({ asset_id: text, ...best })),
  timestamp: number,
})
export const BestFrame = T.Object({
  event_type: T.Literal('best_bid_ask'),
  market: text,
  asset_id: text,
  ...best,
  timestamp: number,
})
export const LastTradeFrame = T.Object({
  event_type: T.Literal('last_trade_price'),
  market: text,
  asset_id: text,
  price: text,
  size: maybe(text),
  timestamp: number,
})
export const TickFrame = T.Object({
  event_type: T.Literal('tick_size_change'),
  market: text,
  asset_id: text,
  new_tick_size: text,
  timestamp: number,
})
export const ResolvedFrame = T.Object({
  event_type: T.Literal('market_resolved'),
  market: text,
  winning_asset_id: maybe(text),
  timestamp: number,
})

/** https://docs.polymarket.com/market-data/websocket/user-channel */
export const OrderFrame = T.Object({
  event_type: T.Literal('order'),
  id: text,
  market: text,
  asset_id: text,
  type: text,
  status: maybe(text),
  size_matched: text,
  timestamp: number,
})
