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
import {
  Address,
  ChainId,
  Dec,
  DecIn,
  DecOrNull,
  OneOf,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
} from '#kernel/wire-types.ts'

const setupWaitSeconds = 60
const waitSeconds = 90
const Asset = T.String({
  minLength: 1,
  maxLength: 64,
  description: 'Market, as `BTC`, `hl:perp:BTC`, `BTC-PERP`, `BTC-USD` or `BTC/USDC:USDC`',
  examples: ['BTC'],
})
const Side = OneOf(['long', 'short'] as const)
const SideIn = OneOf(['long', 'short', 'LONG', 'SHORT'] as const)
const ChainIn = T.Unsafe<string | number>({
  type: ['string', 'integer'],
  maxLength: 64,
  description: 'Chain by id or name; only Arbitrum (42161) is connected to the venue now',
})
const TokenIn = T.String({
  minLength: 1,
  maxLength: 64,
  description: 'Token by symbol or address; only USDC now',
})

const Market = T.Object(
  {
    symbol: Text,
    asset_key: Text,
    name: Text,
    chain_id: ChainId,
    size_decimals: T.Integer(),
    price_decimals_max: T.Integer(),
    max_leverage: T.Integer(),
    only_isolated: T.Boolean(),
    mark_price: Dec,
    oracle_price: Dec,
    mid_price: DecOrNull,
    funding_rate: T.String({ description: 'Of the hour, as a fraction' }),
    open_interest: Dec,
    volume_24h_usd: Dec,
    prev_day_price: Dec,
    min_order_usd: Dec,
    routable: T.Boolean(),
    reason: TextOrNull,
  },
  { $id: 'PerpMarket' },
)

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

const admissionFaults = [
  'policy_denied',
  'trading_paused',
  'setup_incomplete',
  'unavailable',
  'upstream_changed',
]
const readFaults = ['unavailable', 'upstream_timeout', 'upstream_changed']

export const contract = group('perp', {
  markets: read('GET /v1/perp/markets', {
    summary: 'Every perpetual market with its prices, funding and limits',
    access: 'read',
    query: T.Object({
      search_text: T.Optional(
        T.String({ maxLength: 64, description: 'Part of a symbol or name, in any case' }),
      ),
    }),
    output: T.Object(
      { markets: T.Array(Market), total: T.Integer(), as_of: Time },
      { $id: 'PerpMarketsResponse' },
    ),
    faults: readFaults,
  }),
  setupStatus: read('GET /v1/perp/setup', {
    summary: 'Whether perpetual trading is set up, step by step',
    access: 'read',
    output: T.Object(
      {
        setup_complete: T.Boolean(),
        account_activated: T.Boolean(),
        eoa_address: Address,
        api_wallet_address: TextOrNull,
        api_wallet_expires_at: TimeOrNull,
        api_wallet_renews_at: TimeOrNull,
        account_mode: OneOf(['default', 'unified', 'portfolio', 'other'] as const),
        account_value_usd: Dec,
        withdrawable_usd: Dec,
        min_fund_usd: Dec,
        steps: T.Array(T.Object({ key: Text, done: T.Boolean(), error: TextOrNull })),
        venue_requests: T.Union(
          [T.Object({ used: T.Integer(), cap: T.Integer(), limited: T.Boolean() }), T.Null()],
          {
            description:
              'Requests of the account by the count of the venue and how many it may make, at most 5 minutes old; above the cap the venue takes one request in 10 seconds',
          },
        ),
        last_error: TextOrNull,
      },
      { $id: 'PerpSetupStatusResponse' },
    ),
    faults: readFaults,
  }),
  setup: task('POST /v1/perp/setup', {
    summary: 'Make a trading key and have it approved by the account; rotate replaces the key',
    description:
      'Before the first deposit the venue knows no account: the key is made, and approved with the first deposit.',
    access: 'trade',
    rate: 'money',
    waitSeconds: setupWaitSeconds,
    body: T.Object(
      {
        rotate: T.Optional(
          T.Boolean({ default: false, description: 'A new key in place of the present one' }),
        ),
      },
      { $id: 'PerpSetupRequest' },
    ),
    output: TaskResponse,
    faults: ['policy_denied', 'trading_paused', 'unavailable', 'upstream_changed'],
  }),
  orders: read('GET /v1/perp/orders', {
    summary: 'Open orders with their triggers, positions and mark prices',
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
    access: 'trade',
    rate: 'money',
    waitSeconds,
    body: T.Object(
      {
        asset: Asset,
        is_buy: T.Optional(T.Boolean({ description: 'Either this or `side`' })),
        side: T.Optional(SideIn),
        size: T.Optional(
          DecIn({ ...positive, description: 'In the asset; either this or `notional_usd`', example: '0.01' }),
        ),
        notional_usd: T.Optional(DecIn({ ...positive, description: 'Worth of the position', example: 250 })),
        leverage: T.Optional(
          T.Unsafe<number | string>({
            type: ['integer', 'string'],
            minimum: 1,
            pattern: '^[1-9][0-9]{0,3}$',
            description:
              '1 to the most that the market allows; by default as the position has it, else as the account is set, else 1',
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
      { $id: 'PerpOpenRequest' },
    ),
    output: TaskResponse,
    faults: [...admissionFaults, 'insufficient_balance', 'no_position', 'conflict', 'market_closed'],
  }),
  close: task('POST /v1/perp/close', {
    summary: 'Close a position, in part or whole',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
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
      { $id: 'PerpCloseRequest' },
    ),
    output: TaskResponse,
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
    summary: 'Cancel an open order or trigger by the order id of the venue',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    body: T.Object(
      {
        order_id: T.Optional(VenueId),
        oid: T.Optional(VenueId),
        asset: T.Optional(Asset),
      },
      { $id: 'PerpCancelRequest' },
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
  tpSl: task('POST /v1/perp/tp-sl', {
    summary: 'Set or replace the take-profit and stop-loss of an open position',
    description:
      'Reduce-only triggers. The new ones stand before earlier ones of the same leg are cancelled; a leg that is not given stays as it is. Taken also under a kill switch.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
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
      { $id: 'PerpTpSlRequest' },
    ),
    output: TaskResponse,
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
    summary: 'Cancel every open order and trigger, or those of one market',
    description:
      'Positions lose their take-profit and stop-loss, too. The result lists each order with its outcome. Taken also under a kill switch.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    bodyOptional: true,
    body: T.Object({ asset: T.Optional(Asset) }, { $id: 'PerpCancelAllRequest' }),
    output: TaskResponse,
    faults: ['policy_denied', 'setup_incomplete', 'market_closed', 'unavailable', 'upstream_changed'],
  }),
  fills: read('GET /v1/perp/fills', {
    summary: 'Fills with fees and realised profit, newest first',
    description: "From the gateway's own record, which begins with the first funding.",
    access: 'read',
    query: fillsQuery(Asset),
    output: FillsPage,
    faults: readFaults,
  }),
  orderHistory: read('GET /v1/perp/orders/history', {
    summary: 'Orders placed through the gateway, with what became of them, newest first',
    access: 'read',
    query: orderHistoryQuery(Asset),
    output: OrderHistoryPage,
    faults: readFaults,
  }),
  fund: task('POST /v1/perp/fund', {
    summary: 'Move USDC from the wallet to the venue, gasless',
    access: 'trade',
    rate: 'money',
    waitSeconds,
    body: T.Object(
      {
        amount: T.Optional(
          T.Unsafe<string | number>({
            type: ['string', 'integer'],
            pattern: '^(0|[1-9][0-9]{0,77})$',
            minimum: 0,
            description: 'Smallest units of the token; either this or `amount_usd`',
            examples: ['25000000'],
          }),
        ),
        amount_usd: T.Optional(DecIn({ ...positive, places: 6, description: 'In dollars', example: 25 })),
        source_chain_id: T.Optional(ChainIn),
        source_token: T.Optional(TokenIn),
      },
      { $id: 'PerpFundRequest' },
    ),
    output: TaskResponse,
    faults: [
      'policy_denied',
      'trading_paused',
      'insufficient_balance',
      'conflict',
      'unavailable',
      'upstream_changed',
    ],
  }),
  withdraw: task('POST /v1/perp/withdraw', {
    summary: 'Move collateral from the venue to your own wallet',
    description: 'The venue keeps its fee of the amount.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    waitSeconds,
    body: T.Object(
      {
        amount_usd: DecIn({
          ...positive,
          places: 6,
          description: 'In dollars, the fee included',
          example: 25,
        }),
        destination_chain_id: T.Optional(ChainIn),
        destination_token: T.Optional(TokenIn),
      },
      { $id: 'PerpWithdrawRequest' },
    ),
    output: TaskResponse,
    faults: ['policy_denied', 'insufficient_balance', 'unavailable', 'upstream_changed'],
  }),
})
