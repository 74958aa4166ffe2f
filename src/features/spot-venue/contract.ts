import * as T from 'typebox'
import {
  FillsPage,
  fillsQuery,
  OrderHistoryPage,
  orderHistoryQuery,
  Price,
  positive,
  Slippage,
  VenueId,
  VenueOrder,
} from '#engines/venue/records/schemas.ts'
import { group, read, task } from '#kernel/operation.ts'
import { TaskResponse } from '#kernel/task-response.ts'
import { Dec, DecIn, OneOf, Text, TextOrNull, Time } from '#kernel/wire-types.ts'

const waitSeconds = 90
const Asset = T.String({
  minLength: 1,
  maxLength: 64,
  description: 'Market against USDC, as `HYPE`, `hl:spot:HYPE` or `HYPE/USDC`',
  examples: ['HYPE'],
})
const Size = (description: string) => T.Optional(DecIn({ ...positive, description, example: '1.5' }))
const OrderType = T.Optional(OneOf(['market', 'limit'] as const, { default: 'market' }))
const Tif = T.Optional(OneOf(['gtc', 'ioc', 'alo'] as const, { default: 'gtc' }))

const Market = T.Object(
  {
    symbol: Text,
    base: Text,
    quote: Text,
    asset_key: Text,
    price: Dec,
    size_decimals: T.Integer(),
    volume_24h_usd: Dec,
    min_order_usd: Dec,
    routable: T.Boolean(),
    reason: TextOrNull,
  },
  { $id: 'SpotMarket' },
)
const Balance = T.Object(
  { asset: Text, total: Dec, hold: Dec, entry_notional_usd: Dec },
  { $id: 'SpotBalance' },
)

const readFaults = ['unavailable', 'upstream_timeout', 'upstream_changed']
const tradeFaults = [
  'policy_denied',
  'setup_incomplete',
  'insufficient_balance',
  'market_closed',
  'unavailable',
  'upstream_changed',
]

export const contract = group('spot_venue', {
  markets: read('GET /v1/spot_venue/markets', {
    summary: 'Every spot market against USDC with its price and limits',
    access: 'read',
    query: T.Object({
      search_text: T.Optional(
        T.String({ maxLength: 64, description: 'Part of a symbol or token, in any case' }),
      ),
    }),
    output: T.Object(
      { markets: T.Array(Market), total: T.Integer(), as_of: Time },
      { $id: 'SpotMarketsResponse' },
    ),
    faults: readFaults,
  }),
  orders: read('GET /v1/spot_venue/orders', {
    summary: 'Open spot orders with their triggers, balances and prices',
    description: 'Triggers that the gateway keeps, and not the venue, have an id of their own form.',
    access: 'read',
    output: T.Object(
      {
        orders: T.Array(VenueOrder),
        mark_prices: T.Record(T.String(), Dec),
        balances: T.Array(Balance),
        as_of: Time,
      },
      { $id: 'SpotOrdersResponse' },
    ),
    faults: readFaults,
  }),
  buy: task('POST /v1/spot_venue/buy', {
    summary: 'Buy with USDC, optionally with a take-profit and stop-loss bracket',
    description: 'USDC that lies on the perpetual side is moved over first, as a step of the task.',
    access: 'trade',
    rate: 'money',
    waitSeconds,
    taskKind: 'spot_buy',
    body: T.Object(
      {
        asset: Asset,
        size: Size('In the asset; either this or `notional_usdc`'),
        notional_usdc: T.Optional(DecIn({ ...positive, description: 'USDC to spend', example: 50 })),
        order_type: OrderType,
        limit_price: Price('Required for a limit order; on the tick of the market'),
        tif: Tif,
        tp_price: Price('Take-profit: sells what was bought above this price'),
        sl_price: Price('Stop-loss: sells what was bought below this price'),
        slippage_pct: Slippage,
      },
      { $id: 'SpotBuyRequest' },
    ),
    output: TaskResponse,
    faults: [...tradeFaults, 'conflict', 'trading_paused'],
  }),
  sell: task('POST /v1/spot_venue/sell', {
    summary: 'Sell for USDC; without a size everything that is free',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    taskKind: 'spot_sell',
    body: T.Object(
      {
        asset: Asset,
        size: Size('In the asset; without it and without `notional_usdc` everything that is free'),
        notional_usdc: T.Optional(DecIn({ ...positive, description: 'USDC to sell for', example: 50 })),
        order_type: OrderType,
        limit_price: Price('Required for a limit order; on the tick of the market'),
        tif: Tif,
        slippage_pct: Slippage,
      },
      { $id: 'SpotSellRequest' },
    ),
    output: TaskResponse,
    faults: tradeFaults,
  }),
  tpSl: task('POST /v1/spot_venue/tp-sl', {
    summary: 'Sell triggers on a holding: a take-profit, a stop-loss, or both of which one ends the other',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    taskKind: 'spot_tp_sl',
    body: T.Object(
      {
        asset: Asset,
        size: Size('In the asset; omitted sells what is free when the price is reached'),
        tp_price: Price('Sells above this price'),
        sl_price: Price('Sells below this price'),
      },
      { $id: 'SpotTpSlRequest' },
    ),
    output: TaskResponse,
    faults: [...tradeFaults, 'conflict'],
  }),
  cancel: task('POST /v1/spot_venue/orders/cancel', {
    summary: 'Cancel an open spot order or trigger by its order id',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    taskKind: 'spot_cancel',
    body: T.Object(
      {
        order_id: T.Optional(VenueId),
        oid: T.Optional(VenueId),
        asset: T.Optional(Asset),
      },
      { $id: 'SpotCancelRequest' },
    ),
    output: TaskResponse,
    faults: [
      'not_found',
      'policy_denied',
      'setup_incomplete',
      'order_not_cancellable',
      'unavailable',
      'upstream_changed',
    ],
  }),
  cancelAll: task('POST /v1/spot_venue/orders/cancel-all', {
    summary: 'Cancel every open spot order and trigger, or those of one market',
    description:
      'Triggers that the gateway keeps, too. The result lists each order with its outcome. Taken also under a kill switch.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    taskKind: 'spot_cancel_all',
    bodyOptional: true,
    body: T.Object({ asset: T.Optional(Asset) }, { $id: 'SpotCancelAllRequest' }),
    output: TaskResponse,
    faults: ['policy_denied', 'setup_incomplete', 'market_closed', 'unavailable', 'upstream_changed'],
  }),
  fills: read('GET /v1/spot_venue/fills', {
    summary: 'Spot fills with fees and realised profit, newest first',
    description: "From the gateway's own record, which begins with the first funding.",
    access: 'read',
    query: fillsQuery(Asset),
    output: FillsPage,
    faults: readFaults,
  }),
  orderHistory: read('GET /v1/spot_venue/orders/history', {
    summary: 'Spot orders placed through the gateway, with what became of them, newest first',
    description: 'Without triggers that the gateway keeps: what one of them sold is an order of its own.',
    access: 'read',
    query: orderHistoryQuery(Asset),
    output: OrderHistoryPage,
    faults: readFaults,
  }),
})
