import { setColumns } from '#kernel/contract/columns.ts'
import { act, group, type InputOf, read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import {
  Address,
  ChainId,
  ChainRefIn,
  Dec,
  DecIn,
  DecOrNull,
  Id,
  Nullable,
  OneOf,
  TextOrNull,
  Time,
  TimeOrNull,
  TokenRefIn,
  Units,
  UnitsIn,
} from '#kernel/contract/wire-types.ts'

const LimitOrderRequest = T.Object(
  {
    chain_id_in: ChainRefIn('Chain of the token that is sold'),
    chain_id_out: T.Optional(ChainRefIn('Chain of the token that is bought; omitted: `chain_id_in`')),
    token_in: TokenRefIn('Token that is sold'),
    token_out: TokenRefIn('Token that is bought'),
    amount: T.Optional(UnitsIn('Smallest units of `token_in`; either this or `amount_usd`')),
    amount_usd: T.Optional(
      DecIn({
        places: 6,
        exclusiveMinimum: 0,
        description: 'In USD, at the price of the moment; either this or `amount`',
        example: '25',
      }),
    ),
    price_usd_trigger: DecIn({ exclusiveMinimum: 0, description: 'In USD', example: '17.5' }),
    condition: OneOf(['lte', 'gte'] as const, {
      description: 'lte: at the price or below it; gte: at the price or above it',
    }),
    trigger_token_address: T.Optional(TokenRefIn('Token whose price counts; omitted: `token_out`')),
    trigger_token_chain: T.Optional(ChainRefIn('Its chain; omitted: `chain_id_out`')),
    slippage_bps: T.Optional(T.Integer({ minimum: 1, maximum: 1_000, default: 100 })),
    expires_at: T.Optional(Nullable(Time)),
  },
  {
    $id: 'LimitOrderRequest',
    additionalProperties: false,
    examples: [
      {
        chain_id_in: '8453',
        token_in: 'USDC',
        token_out: 'AERO',
        amount_usd: '25',
        price_usd_trigger: '1.1',
        condition: 'lte',
      },
    ],
  },
)

export const limitOrderStatuses = [
  'active',
  'executing',
  'executed',
  'failed',
  'cancelled',
  'expired',
] as const

export const limitOrderFields = {
  limit_order_id: Id('Limit order'),
  order_id: Id('The same as `limit_order_id`'),
  status: OneOf(limitOrderStatuses),
  chain_id_in: ChainId,
  chain_id_out: ChainId,
  token_in: Address,
  token_out: Address,
  symbol_in: T.Optional(TextOrNull),
  symbol_out: T.Optional(TextOrNull),
  decimals_in: T.Optional(Nullable(T.Integer())),
  decimals_out: T.Optional(Nullable(T.Integer())),
  amount: Units,
  price_usd_trigger: Dec,
  condition: OneOf(['lte', 'gte'] as const),
  trigger_token_address: Address,
  trigger_token_chain: ChainId,
  slippage_bps: T.Integer(),
  filled_amount: Nullable(Units),
  amount_out: Nullable(Units),
  avg_price_usd: DecOrNull,
  price_stale: T.Boolean({ description: 'No recent price: nothing fires until there is one' }),
  attempts: T.Integer(),
  task_id: TextOrNull,
  tx_hash: TextOrNull,
  failure_reason: TextOrNull,
  expires_at: TimeOrNull,
  created_at: Time,
  updated_at: Time,
}
export const LimitOrderStatus = T.Object(limitOrderFields, { $id: 'LimitOrderStatus' })
setColumns(LimitOrderStatus, [
  'order_id',
  'status',
  'amount',
  'symbol_out',
  'condition',
  'price_usd_trigger',
  'expires_at',
])
export type LimitOrderView = T.Static<typeof LimitOrderStatus>

const orderPath = T.Object({ order_id: T.String({ format: 'uuid', description: 'Limit order' }) })

export const contract = group('limit_orders', 'Swaps that wait for a price.', {
  create: task('POST /v1/limit-orders', {
    summary: 'Leave an order that swaps when a price is reached',
    mainTool: {
      text: 'Places a limit order: buys or sells a token of your wallet once its price drops below a limit, or rises to it. Take `swap_execute` for now, `hooks_register` for a stop-loss or take-profit on what you hold, and `perp_open` with leverage.',
      fields: {
        chain_id_in: 'Chain, by name or id',
        token_in: 'Token sold: symbol or address',
        token_out: 'Token bought',
        amount_usd: 'Its worth in USD',
        price_usd_trigger: 'Price of one token in USD',
        condition: 'lte: at it or below; gte: at it or above',
        trigger_token_address: 'Token whose price counts; left out: `token_out`',
      },
    },
    description:
      'Use it to swap a token at a price that is not there yet, also while nobody is looking. Give exactly one of `amount` (smallest units of `token_in`) and `amount_usd`. The order fires on two executable quotes at its own size that agree, checks balance and policy again, and swaps once. Next: with `wait=true`, read `result.order.limit_order_id`; `limit_orders_get` shows what became of it, and events `limit_order.*` report it.',
    access: 'trade',
    rate: 'money',
    waitSeconds: 60,
    taskKind: 'limit_order_create',
    body: LimitOrderRequest,
    output: TaskResponse,
    result: T.Object({ order: LimitOrderStatus }, { $id: 'LimitOrderCreated', additionalProperties: true }),
    faults: [
      'policy_denied',
      'approval_required',
      'trading_paused',
      'insufficient_balance',
      'no_route',
      'insufficient_liquidity',
      'conflict',
      'unavailable',
      'upstream_changed',
    ],
  }),
  list: read('GET /v1/limit-orders', {
    summary: 'Your limit orders, newest first',
    description:
      'Use it to see your limit orders, all of them or those of one `status`. Next: `limit_orders_get` for one, `limit_orders_cancel` to cancel one; `after` reads further ones: a full page has a Link header to them.',
    access: 'read',
    query: T.Object({
      status: T.Optional(
        OneOf([...limitOrderStatuses, 'pending', 'all'] as const, {
          description: 'pending is the same as active',
        }),
      ),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 500, default: 500 })),
      after: T.Optional(T.String({ format: 'uuid', description: 'Orders after this one' })),
    }),
    output: T.Array(LimitOrderStatus),
    pageAfter: 'limit_order_id',
  }),
  get: read('GET /v1/limit-orders/{order_id}', {
    summary: 'One limit order',
    description:
      'Use it to see what became of an order. Next: `tasks_get` with `task_id` has the swap of an order that fired.',
    access: 'read',
    params: orderPath,
    output: LimitOrderStatus,
    faults: ['not_found'],
  }),
  cancel: act('DELETE /v1/limit-orders/{order_id}', {
    summary: 'Cancel a limit order of which nothing has been sent',
    description:
      'Use it to take an order back. Repeated, it answers the same. An order that fired is cancellable until its swap is signed: then `order_not_cancellable`. Of a cancel and a signature that come at once, one wins. Next: `limit_orders_list`.',
    access: 'trade',
    repeatable: true,
    rate: 'exit',
    params: orderPath,
    output: LimitOrderStatus,
    replies: 'derived',
    faults: ['not_found', 'order_not_cancellable'],
  }),
})

export type LimitOrderInput = InputOf<(typeof contract.entries)['create']>
export type ListInput = InputOf<(typeof contract.entries)['list']>
