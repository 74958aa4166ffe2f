import {
  cancelRequest,
  FillsPage,
  fillsQuery,
  OrderHistoryPage,
  orderHistoryQuery,
  Price,
  positive,
  readFaults,
  Slippage,
  VenueOrder,
} from '#engines/venue/records/contract-schemas.ts'
import {
  CancelAllResult,
  CancelResult,
  openResult,
  protectiveOrderIds,
  SpotOrderResult,
} from '#engines/venue/records/task-results.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { group, type InputOf, read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { Dec, DecIn, OneOf, Text, TextOrNull, Time } from '#kernel/contract/wire-types.ts'

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
setColumns(Market, ['symbol', 'price', 'volume_24h_usd', 'min_order_usd', 'routable'])
const Balance = T.Object(
  { asset: Text, total: Dec, hold: Dec, entry_notional_usd: Dec },
  { $id: 'SpotBalance' },
)

const tradeFaults = [
  'policy_denied',
  'setup_incomplete',
  'insufficient_balance',
  'market_closed',
  'unavailable',
  'upstream_changed',
]

const TpSlResult = T.Object(protectiveOrderIds, {
  $id: 'SpotTpSlResult',
  description: 'The triggers of the holding',
  ...openResult,
})

const about = 'Spot markets against USDC; they share setup and funding with `perp`.'

export const contract = group('spot_venue', about, {
  markets: read('GET /v1/spot_venue/markets', {
    summary: 'Every spot market against USDC with its price and limits',
    description:
      'Use it to choose a market against USDC; prices and minimums are in USD. Next: `spot_venue_buy`.',
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
    description:
      'Use it to read open spot orders, triggers and balances; sizes are in the asset. Triggers that the gateway holds, and not the venue, have ids of another form. Next: `spot_venue_cancel` with an `order_id`, or `spot_venue_sell`.',
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
    description:
      'Use it to buy an asset with USDC. It needs the setup and funding of `perp_setup` and `perp_fund`. Give exactly one of `size` (in the asset) and `notional_usdc`. USDC that is missing on the spot side is moved over from the perpetual side first. Next: poll `tasks_get`, or send `wait=true`. Success is `status: completed` and `outcome: executed`; `result` has the filled size, average price and fee.',
    access: 'trade',
    rate: 'money',
    waitSeconds,
    taskKind: 'spot_buy',
    isEndReported: true,
    body: T.Object(
      {
        asset: Asset,
        size: Size('In the asset; either this or `notional_usdc`'),
        notional_usdc: T.Optional(
          DecIn({ ...positive, description: 'USDC to spend; either this or `size`', example: 50 }),
        ),
        order_type: OrderType,
        limit_price: Price('Required for a limit order; on the tick of the market'),
        tif: Tif,
        tp_price: Price('Take-profit: sells what was bought at or above this price'),
        sl_price: Price('Stop-loss: sells what was bought at or below this price'),
        slippage_pct: Slippage,
      },
      { $id: 'SpotBuyRequest', examples: [{ asset: 'HYPE', notional_usdc: '50' }] },
    ),
    output: TaskResponse,
    result: SpotOrderResult,
    faults: [...tradeFaults, 'conflict', 'approval_required', 'trading_paused'],
  }),
  sell: task('POST /v1/spot_venue/sell', {
    summary: 'Sell for USDC; without a size everything that is free',
    description:
      'Use it to sell a holding for USDC. Without `size` (in the asset) and without `notional_usdc` it sells everything that is free. It is accepted under a kill switch. Next: poll `tasks_get`, or send `wait=true`. Success is `status: completed` and `outcome: executed`; `result` has the sold size, average price and realised profit in USD.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    taskKind: 'spot_sell',
    isEndReported: true,
    body: T.Object(
      {
        asset: Asset,
        size: Size('In the asset; without it and without `notional_usdc` everything that is free'),
        notional_usdc: T.Optional(
          DecIn({ ...positive, description: 'USDC to receive; either this or `size`', example: 50 }),
        ),
        order_type: OrderType,
        limit_price: Price('Required for a limit order; on the tick of the market'),
        tif: Tif,
        slippage_pct: Slippage,
      },
      { $id: 'SpotSellRequest', examples: [{ asset: 'HYPE' }] },
    ),
    output: TaskResponse,
    result: SpotOrderResult,
    faults: tradeFaults,
  }),
  tpSl: task('POST /v1/spot_venue/tp-sl', {
    summary: 'Sell triggers on a holding: a take-profit, a stop-loss, or both of which one ends the other',
    description:
      'Use it to sell a holding at a price: a take-profit, a stop-loss, or both, of which one cancels the other. Without `size` (in the asset) it sells what is free when the price is reached. Next: poll `tasks_get`; `result.tp_oids` and `result.sl_oids` are the new ids. The fill comes as the event `order.filled`.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    taskKind: 'spot_tp_sl',
    isEndReported: true,
    body: T.Object(
      {
        asset: Asset,
        size: Size('In the asset; omitted sells what is free when the price is reached'),
        tp_price: Price('Sells at or above this price'),
        sl_price: Price('Sells at or below this price'),
      },
      { $id: 'SpotTpSlRequest', examples: [{ asset: 'HYPE', tp_price: '60', sl_price: '30' }] },
    ),
    output: TaskResponse,
    result: TpSlResult,
    faults: [...tradeFaults, 'conflict'],
  }),
  cancel: task('POST /v1/spot_venue/orders/cancel', {
    repeatable: true,
    summary: 'Cancel an open spot order or trigger by its order id',
    description:
      'Use it to cancel one open spot order or trigger. Give `order_id` (or its alias `oid`) as `spot_venue_orders` shows it. `order_not_cancellable` means that the order has ended. Next: poll `tasks_get`; what was filled before the cancel stays filled.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    taskKind: 'spot_cancel',
    isEndReported: true,
    body: cancelRequest(Asset, { $id: 'SpotCancelRequest', examples: [{ order_id: '91490942' }] }),
    output: TaskResponse,
    result: CancelResult,
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
    isAddition: true,
    repeatable: true,
    summary: 'Cancel every open spot order and trigger, or those of one market',
    description:
      'Use it to cancel every open spot order and trigger, or those of `asset`, including triggers that the gateway holds. It is accepted under a kill switch. Next: poll `tasks_get`; `result.orders` has the outcome of each order.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    taskKind: 'spot_cancel_all',
    isEndReported: true,
    bodyOptional: true,
    body: T.Object(
      { asset: T.Optional(Asset) },
      { $id: 'SpotCancelAllRequest', examples: [{ asset: 'HYPE' }] },
    ),
    output: TaskResponse,
    result: CancelAllResult,
    faults: ['policy_denied', 'setup_incomplete', 'market_closed', 'unavailable', 'upstream_changed'],
  }),
  fills: read('GET /v1/spot_venue/fills', {
    isAddition: true,
    summary: 'Spot fills with fees and realised profit, newest first',
    description:
      "Use it for fees and realised profit in USD by fill. It reads the gateway's own record, which begins with the first funding. Next: `before=next_before` reads the next page.",
    access: 'read',
    query: fillsQuery(Asset),
    output: FillsPage,
    faults: readFaults,
  }),
  orderHistory: read('GET /v1/spot_venue/orders/history', {
    isAddition: true,
    summary: 'Spot orders placed through the gateway, with what became of them, newest first',
    description:
      'Use it to learn how an order of the gateway ended. Triggers that the gateway holds are not listed; the sale that one of them makes is an order of its own. Next: `before=next_before` reads the next page.',
    access: 'read',
    query: orderHistoryQuery(Asset),
    output: OrderHistoryPage,
    faults: readFaults,
  }),
})

export type SpotInput<Key extends keyof typeof contract.entries> = InputOf<(typeof contract.entries)[Key]>
setColumns(contract.entries.orders.output, ['balances', 'orders', 'as_of'])
