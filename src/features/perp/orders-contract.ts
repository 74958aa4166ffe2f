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
  OrderLeg,
  openResult,
  PerpOrderResult,
  protectiveOrderIds,
} from '#engines/venue/records/task-results.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { Dec, DecIn, DecOrNull, OneOf, Text, Time } from '#kernel/contract/wire-types.ts'

const waitSeconds = 90
const Asset = T.String({
  minLength: 1,
  maxLength: 64,
  description: 'Market, as `BTC`, `hl:perp:BTC`, `BTC-PERP`, `BTC-USD` or `BTC/USDC:USDC`',
  examples: ['BTC'],
})
const Side = OneOf(['long', 'short'] as const)
const SideIn = OneOf(['long', 'short', 'LONG', 'SHORT'] as const)
const Position = T.Object(
  {
    asset: Text,
    side: Side,
    size: Dec,
    entry_price: DecOrNull,
    mark_price: DecOrNull,
    leverage: T.Integer(),
    is_cross: T.Boolean(),
    margin_used_usd: Dec,
    liquidation_price: DecOrNull,
    unrealized_pnl_usd: Dec,
    funding_paid_usd: Dec,
    tp_oids: T.Array(Text),
    sl_oids: T.Array(Text),
  },
  { $id: 'PerpPosition' },
)
setColumns(Position, [
  'asset',
  'side',
  'size',
  'entry_price',
  'mark_price',
  'unrealized_pnl_usd',
  'liquidation_price',
])

const admissionFaults = [
  'policy_denied',
  'approval_required',
  'trading_paused',
  'setup_incomplete',
  'unavailable',
  'upstream_changed',
]
const TpSlResult = T.Object(
  {
    asset: Text,
    size: Dec,
    follows_position: T.Boolean(),
    ...protectiveOrderIds,
    replaced: T.Array(
      T.Object({ order_id: Text, leg: Text, cancelled: T.Boolean(), venue_status: Text }, openResult),
    ),
    legs: T.Array(OrderLeg),
  },
  { $id: 'PerpProtectionResult', description: 'The triggers of the position', ...openResult },
)

export const ordersEntries = {
  orders: read('GET /v1/perp/orders', {
    summary: 'Open orders with their triggers, positions and mark prices',
    mainTool: {
      text: 'Your open perp positions with unrealised profit, liquidation price and margin; your open orders and triggers; your money at the venue, Hyperliquid. Take `outstanding_orders_list` for orders on tokens of wallets.',
    },
    description:
      'Use it to read open orders, triggers and positions; sizes are in the asset, money in USD. Next: `perp_close`, `perp_tp_sl` or `perp_cancel` with an `order_id`.',
    access: 'read',
    output: T.Object(
      {
        orders: T.Array(VenueOrder),
        positions: T.Array(Position),
        mark_prices: T.Record(T.String(), Dec),
        account: T.Object({ account_value_usd: Dec, withdrawable_usd: Dec, margin_used_usd: Dec }),
        as_of: Time,
      },
      { $id: 'PerpOrdersResponse' },
    ),
    faults: readFaults,
  }),
  open: task('POST /v1/perp/open', {
    summary: 'Open a position, optionally with a take-profit and stop-loss bracket',
    mainTool: {
      text: 'Opens or increases a perpetual position: goes long or short on BTC, ETH or another coin with leverage, at market price or by a limit order, with stop and take-profit. It needs `perp_setup` once, and `perp_fund`. Give `notional_usd`, which is no margin, or `size`. Take `swap_execute` to own a token, and `perp_close` to reduce.',
      fields: {
        asset: 'Market, such as BTC',
        side: '',
        notional_usd: 'Worth of the position in USD',
        size: 'In the asset',
        leverage: 'Multiple',
        order_type: '',
        limit_price: 'Of a limit order',
        tp_price: 'Take-profit',
        sl_price: 'Stop-loss',
      },
    },
    description:
      'Use it to open or increase a position. It needs setup AND funding: `setup_incomplete` (409) names the missing call in `next_call`. Give exactly one of `size` (in the asset) and `notional_usd`, and exactly one of `side` and `is_buy`. Next: poll `tasks_get`, or send `wait=true`. Success is `status: completed` and `outcome: executed`; `result` has the filled size, average price and fee. With `result.resting: true` the order rests in the book and is not filled yet.',
    access: 'trade',
    rate: 'money',
    waitSeconds,
    isEndReported: true,
    body: T.Object(
      {
        asset: Asset,
        is_buy: T.Optional(T.Boolean({ description: 'True is long; either this or `side`' })),
        side: T.Optional(SideIn),
        size: T.Optional(
          DecIn({
            ...positive,
            description: 'Size in the asset; either this or `notional_usd`',
            example: '0.01',
          }),
        ),
        notional_usd: T.Optional(
          DecIn({
            ...positive,
            description: 'Worth of the position in USD; either this or `size`',
            example: 250,
          }),
        ),
        leverage: T.Optional(
          T.Unsafe<number | string>({
            type: ['integer', 'string'],
            minimum: 1,
            pattern: '^[1-9][0-9]{0,3}$',
            examples: [3],
            description:
              'Multiple, from 1 to the maximum of the market; default: that of the position, else of the account, else 1',
          }),
        ),
        is_cross: T.Optional(
          T.Boolean({ description: 'Default true, except in markets that are isolated only' }),
        ),
        order_type: T.Optional(OneOf(['market', 'limit'] as const, { default: 'market' })),
        limit_price: Price('Required for a limit order; on the tick of the market'),
        tif: T.Optional(OneOf(['gtc', 'ioc', 'alo'] as const, { default: 'gtc' })),
        slippage_pct: Slippage,
        tp_price: Price('Take-profit, on the tick of the market'),
        sl_price: Price('Stop-loss, on the tick of the market'),
        tp_is_market: T.Optional(T.Boolean({ default: true })),
        sl_is_market: T.Optional(T.Boolean({ default: true })),
        reduce_only: T.Optional(T.Boolean({ default: false })),
        client_order_id: T.Optional(
          T.String({ maxLength: 64, description: 'A label; the id at the venue is derived from the task' }),
        ),
      },
      {
        $id: 'PerpOpenRequest',
        examples: [
          {
            asset: 'BTC',
            side: 'long',
            notional_usd: '250',
            leverage: 3,
            tp_price: '110000',
            sl_price: '90000',
          },
        ],
      },
    ),
    output: TaskResponse,
    result: PerpOrderResult,
    faults: [...admissionFaults, 'insufficient_balance', 'no_position', 'conflict', 'market_closed'],
  }),
  close: task('POST /v1/perp/close', {
    summary: 'Close a position, in part or whole',
    mainTool: {
      text: 'Closes a perp position, long or short: gets out of it, or reduces it by `size`. Take `perp_tp_sl` to close it at a price to come.',
      fields: { asset: 'Market, such as BTC', size: 'In the asset; left out: all' },
    },
    description:
      'Use it to reduce or close a position. Without `size` (in the asset) it closes all. It is accepted under a kill switch. Next: poll `tasks_get`, or send `wait=true`. Success is `status: completed` and `outcome: executed`; `result` has the closed size, average price and realised profit in USD.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    isEndReported: true,
    body: T.Object(
      {
        asset: Asset,
        size: T.Optional(
          DecIn({ ...positive, description: 'In the asset; omitted closes all', example: '0.01' }),
        ),
        order_type: T.Optional(OneOf(['market', 'limit'] as const, { default: 'market' })),
        limit_price: Price('Required for a limit order; on the tick of the market'),
        slippage_pct: Slippage,
      },
      { $id: 'PerpCloseRequest', examples: [{ asset: 'BTC' }] },
    ),
    output: TaskResponse,
    result: PerpOrderResult,
    faults: [
      'policy_denied',
      'setup_incomplete',
      'no_position',
      'market_closed',
      'unavailable',
      'upstream_changed',
    ],
  }),
  cancel: task('POST /v1/perp/orders/cancel', {
    repeatable: true,
    summary: 'Cancel an open order or trigger by the order id of the venue',
    mainTool: {
      text: 'Cancels one resting order or trigger at the perp venue, by its number. Take `outstanding_orders_cancel` for orders on tokens of wallets, and `perp_cancel_all` for every perp order.',
      fields: { order_id: 'From `perp_orders`' },
    },
    description:
      'Use it to cancel one open order or trigger. Give `order_id` (or its alias `oid`) as `perp_orders` shows it. `order_not_cancellable` means that the order has ended. Next: poll `tasks_get`; what was filled before the cancel stays filled, see `perp_fills`.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    isEndReported: true,
    body: cancelRequest(Asset, {
      $id: 'PerpCancelRequest',
      examples: [{ order_id: '91490942', asset: 'BTC' }],
    }),
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
  tpSl: task('POST /v1/perp/tp-sl', {
    isAddition: true,
    summary: 'Set or replace the take-profit and stop-loss of an open position',
    mainTool: {
      text: 'Sets, adds or moves stop-loss and take-profit of an open perp position, long or short. Take `hooks_register` for a token of a wallet.',
      fields: {
        asset: 'Market, such as BTC',
        tp_price: 'Take-profit',
        sl_price: 'Stop-loss',
        size: 'In the asset; left out: the whole position',
      },
    },
    description:
      'Use it to protect an open position. The triggers are reduce-only. New triggers are placed before earlier ones of the same leg are cancelled; a leg that is not given stays as it is. Without `size` (in the asset) they follow the whole position. It is accepted under a kill switch. Next: poll `tasks_get`; `result.tp_oids` and `result.sl_oids` are the new order ids.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    isEndReported: true,
    body: T.Object(
      {
        asset: Asset,
        size: T.Optional(
          DecIn({
            ...positive,
            description: 'In the asset; omitted follows the whole position, also when its size changes',
            example: '0.01',
          }),
        ),
        tp_price: Price('Take-profit, on the tick of the market, on the winning side of the mark'),
        sl_price: Price('Stop-loss, on the tick of the market, on the losing side of the mark'),
        tp_is_market: T.Optional(T.Boolean({ default: true })),
        sl_is_market: T.Optional(T.Boolean({ default: true })),
        replace: T.Optional(
          T.Boolean({ default: true, description: 'False keeps earlier ones beside the new ones' }),
        ),
      },
      { $id: 'PerpTpSlRequest', examples: [{ asset: 'BTC', tp_price: '110000', sl_price: '90000' }] },
    ),
    output: TaskResponse,
    result: TpSlResult,
    faults: [
      'policy_denied',
      'setup_incomplete',
      'no_position',
      'market_closed',
      'unavailable',
      'upstream_changed',
    ],
  }),
  cancelAll: task('POST /v1/perp/orders/cancel-all', {
    isAddition: true,
    repeatable: true,
    summary: 'Cancel every open order and trigger, or those of one market',
    description:
      'Use it to cancel every open order, or those of `asset`. Positions stay open and lose their take-profit and stop-loss. It is accepted under a kill switch. Next: poll `tasks_get`; `result.orders` has the outcome of each order.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    isEndReported: true,
    bodyOptional: true,
    body: T.Object(
      { asset: T.Optional(Asset) },
      { $id: 'PerpCancelAllRequest', examples: [{ asset: 'BTC' }] },
    ),
    output: TaskResponse,
    result: CancelAllResult,
    faults: ['policy_denied', 'setup_incomplete', 'market_closed', 'unavailable', 'upstream_changed'],
  }),
  fills: read('GET /v1/perp/fills', {
    isAddition: true,
    summary: 'Fills with fees and realised profit, newest first',
    description:
      "Use it for fees and realised profit in USD by fill. It reads the gateway's own record, which begins with the first funding. Next: `before=next_before` reads the next page.",
    access: 'read',
    query: fillsQuery(Asset),
    output: FillsPage,
    faults: readFaults,
  }),
  orderHistory: read('GET /v1/perp/orders/history', {
    isAddition: true,
    summary: 'Orders placed through the gateway, with what became of them, newest first',
    description:
      'Use it to learn how an order of the gateway ended. Sizes are in the asset, prices in USD. Next: `before=next_before` reads the next page; `tasks_get` has the task of an order.',
    access: 'read',
    query: orderHistoryQuery(Asset),
    output: OrderHistoryPage,
    faults: readFaults,
  }),
}
setColumns(ordersEntries.orders.output, ['positions', 'orders', 'account', 'as_of'])
