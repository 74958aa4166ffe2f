import * as T from '#kernel/contract/schema.ts'

/** The replies of the order book's service. */

const text = T.String()
const number = T.Union([T.String(), T.Number()])
const maybe = <S extends T.TSchema>(schema: S) => T.Optional(T.Union([schema, T.Null()]))

const Level = T.Object({ price: text, size: text })
/** The best price comes last on both sides. https://docs.polymarket.com/api-reference/market-data/get-order-book */
export const WireBook = T.Object({
  market: text,
  asset_id: text,
  timestamp: maybe(number),
  hash: maybe(text),
  bids: T.Array(Level),
  asks: T.Array(Level),
  min_order_size: number,
  tick_size: number,
  neg_risk: T.Boolean(),
  last_trade_price: maybe(text),
})
export type WireBook = T.Static<typeof WireBook>

/** https://docs.polymarket.com/api-reference/market-data/get-tick-size */
export const TickSize = T.Object({ minimum_tick_size: number })
/** https://docs.polymarket.com/api-reference/market-data/get-neg-risk */
export const NegRisk = T.Object({ neg_risk: T.Boolean() })
/** https://docs.polymarket.com/api-reference/market-data/get-fee-rate */
export const FeeRate = T.Object({ base_fee: T.Number() })
/** https://docs.polymarket.com/api-reference/market-data/get-clob-market-info */
export const ClobMarket = T.Object({
  c: text,
  t: T.Array(T.Object({ t: text, o: text })),
  mos: number,
  mts: number,
  nr: maybe(T.Boolean()),
  ao: T.Boolean(),
  sd: maybe(T.Integer()),
  fd: maybe(T.Object({ r: number, e: number })),
})
/** https://docs.polymarket.com/api-reference/markets/get-prices-history */
export const PriceHistory = T.Object({ history: T.Array(T.Object({ t: T.Integer(), p: T.Number() })) })
/** Seconds. https://docs.polymarket.com/api-reference/data/get-server-time */
export const ServerTime = T.Number()

/** https://docs.polymarket.com/api-reference/authentication */
export const ApiKey = T.Object({ apiKey: text, secret: text, passphrase: text })
export const ApiKeys = T.Object({ apiKeys: T.Array(text) })
export const ClosedOnly = T.Object({ closed_only: T.Boolean() })

/** Amounts are empty where nothing matched. https://docs.polymarket.com/api-reference/trade/post-a-new-order */
export const OrderAnswer = T.Object({
  success: maybe(T.Boolean()),
  errorMsg: maybe(text),
  orderID: maybe(text),
  status: maybe(text),
  makingAmount: maybe(number),
  takingAmount: maybe(number),
  tradeIDs: maybe(T.Array(text)),
  transactionsHashes: maybe(T.Array(text)),
})
export type OrderAnswer = T.Static<typeof OrderAnswer>

/** https://docs.polymarket.com/api-reference/trade/cancel-single-order */
export const CancelAnswer = T.Object({
  canceled: T.Union([T.Array(text), T.Null()]),
  not_canceled: T.Optional(T.Union([T.Record(text, text), T.Null()])),
})

/** https://docs.polymarket.com/api-reference/trade/get-user-orders */
export const WireOrder = T.Object({
  id: text,
  status: text,
  market: text,
  asset_id: text,
  side: text,
  outcome: maybe(text),
  original_size: text,
  size_matched: text,
  price: text,
  order_type: maybe(text),
  expiration: maybe(number),
  created_at: maybe(number),
  associate_trades: maybe(T.Array(text)),
})
export type WireOrder = T.Static<typeof WireOrder>

const MakerOrder = T.Object({
  order_id: text,
  owner: maybe(text),
  maker_address: maybe(text),
  matched_amount: text,
  price: text,
  fee_rate_bps: maybe(number),
  asset_id: text,
  outcome: maybe(text),
  side: maybe(text),
})
/** The top level is the taker's, also for a maker who reads it. https://docs.polymarket.com/api-reference/trade/get-trades */
export const WireTrade = T.Object({
  id: text,
  taker_order_id: text,
  market: text,
  asset_id: text,
  side: text,
  size: text,
  price: text,
  fee_rate_bps: maybe(number),
  status: text,
  match_time: maybe(number),
  match_time_nano: maybe(number),
  last_update: maybe(number),
  outcome: maybe(text),
  owner: maybe(text),
  maker_address: maybe(text),
  transaction_hash: maybe(text),
  trader_side: maybe(text),
  maker_orders: maybe(T.Array(MakerOrder)),
})
export type WireTrade = T.Static<typeof WireTrade>

export const CursorPage = T.Object({ data: T.Array(T.Unsafe<unknown>({})), next_cursor: maybe(text) })

/** Base units. https://docs.polymarket.com/api-reference/trade/get-balance-allowance */
export const BalanceAllowance = T.Object({
  balance: text,
  allowances: maybe(T.Record(text, text)),
  allowance: maybe(text),
})

/** https://docs.polymarket.com/developers/CLOB/clients/methods-l2#getnotifications */
export const Notifications = T.Array(
  T.Object({
    id: T.Integer(),
    type: T.Integer(),
    timestamp: maybe(number),
    payload: maybe(T.Unsafe<unknown>({})),
  }),
)

/** https://docs.polymarket.com/api-reference/geoblock */
export const Geoblock = T.Object({ blocked: T.Boolean(), country: maybe(text) })

export const ErrorBody = T.Object({
  error: maybe(text),
  errorMsg: maybe(text),
  error_msg: maybe(text),
  type: maybe(text),
  code: maybe(T.Union([text, T.Number()])),
  retry_after_seconds: maybe(T.Number()),
})
/** An answer whose content says nothing. */
export const AnyAnswer = T.Unsafe<unknown>({})
