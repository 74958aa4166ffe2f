import { openResult } from '#engines/venue/records/task-results.ts'
import { setColumns } from '#kernel/contract/columns.ts'
import { read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { DecIn, Nullable, OneOf } from '#kernel/contract/wire-types.ts'
import {
  ConditionIdIn,
  OrderType,
  OutcomeIdIn,
  Price,
  PriceOrNull,
  PriceOut,
  Protocol,
  readFaults,
  Settlement,
  Shares,
  SharesOut,
  Side,
  Text,
  Time,
  taskFaults,
  Usd,
  UsdOut,
  Venue,
} from './wire-types.ts'

const waitSeconds = 90

const ExitState = OneOf(['none', 'waiting', 'resting', 'watched', 'failed'] as const, {
  description:
    'waiting: the whole order has not ended, or its shares are not settled; resting: in the book; watched: the gateway sells once the bid reaches the price',
})

const OrderResult = T.Object(
  {
    venue: Venue,
    market_id: T.String({ description: 'Id of the market at the venue' }),
    condition_id: T.String({ description: 'Condition that the outcome belongs to' }),
    outcome_id: T.String({ description: 'The outcome that is traded' }),
    protocol: Protocol,
    side: Side,
    order_id: T.Union([Text, T.Null()], {
      description: 'Id of the order at the venue; null where none was placed',
    }),
    order_status: OneOf(['live', 'matched', 'delayed', 'unmatched', 'cancelled', 'expired'] as const, {
      description: 'State of the order: `live` rests in the book, `delayed` waits for its match',
    }),
    settlement: Nullable(Settlement, {
      description: 'State of the trade that is furthest from its end; null without one',
    }),
    trade_ids: T.Array(Text, { description: 'Trades of the order at the venue' }),
    filled_shares: T.String({
      description: 'Matched shares that have not failed, in whole tokens (decimal text)',
    }),
    settled_shares: T.String({ description: 'Shares of confirmed trades, in whole tokens (decimal text)' }),
    avg_price: PriceOrNull('Average price of the matched shares, fee not included; null without a match'),
    fee_usd: UsdOut('Fee of the confirmed trades'),
    total_usd: UsdOut('What the confirmed trades cost with the fee, or brought after it'),
    making_amount: T.String({ description: 'What the signed order gives, in smallest units' }),
    taking_amount: T.String({ description: 'What the signed order takes, in smallest units' }),
    tx_hashes: T.Array(Text, { description: 'Transactions of the settlement' }),
    take_profit_state: ExitState,
    take_profit_order_id: T.Union([Text, T.Null()], {
      description:
        'Order of the take-profit; null until the whole order has ended and its shares are settled, and while the gateway watches',
    }),
    take_profit_error: T.Union([Text, T.Null()], {
      description: 'Why there is no take-profit; null where nothing failed',
    }),
    stop_loss_state: ExitState,
  },
  { $id: 'PredictionOrderOutcome', description: 'What became of the order', ...openResult },
)
setColumns(OrderResult, [
  'side',
  'order_status',
  'settlement',
  'filled_shares',
  'avg_price',
  'fee_usd',
  'total_usd',
  'take_profit_state',
  'stop_loss_state',
  'order_id',
])

const CancelResult = T.Object(
  {
    canceled: T.Array(Text, { description: 'Orders that the venue has cancelled' }),
    not_canceled: T.Record(T.String(), T.String(), {
      description: 'Orders that were not cancelled, each with the reason of the venue',
    }),
  },
  { $id: 'PredictionCancelOutcome', description: 'What was cancelled, and what was not', ...openResult },
)

const OpenOrder = T.Object(
  {
    id: T.String({ description: 'Id of the order, as the cancel takes it' }),
    venue: Venue,
    market: T.String({ description: 'Condition of the market' }),
    asset_id: T.String({ description: 'Same as outcome_id' }),
    outcome_id: T.String({ description: 'The outcome that is traded' }),
    protocol: Protocol,
    neg_risk: T.Boolean({ description: 'Whether exactly one outcome of the event can win' }),
    side: Side,
    outcome: T.String({ description: 'Name of the outcome, in the words of the venue' }),
    original_size: SharesOut,
    size_matched: T.String({ description: 'Matched shares, settled or not, in whole tokens (decimal text)' }),
    price: PriceOut('Limit price'),
    order_type: OrderType,
    expiration: T.Union([Time, T.Null()], { description: 'When a GTD order ends; null for others' }),
    status: OneOf(['live', 'delayed', 'waiting', 'watched'] as const, {
      description:
        'live: rests at the venue; delayed: waits for its match; waiting: an exit whose purchase has not ended as a whole, or is not settled; watched: an exit that the gateway watches',
    }),
    leg: OneOf(['order', 'tp', 'sl'] as const, { description: 'order, take-profit or stop-loss' }),
    title: T.String({ description: 'The question, in the words of the venue' }),
    task_id: T.Union([Text, T.Null()], {
      description: 'Task that placed it; null for orders of another client',
    }),
    created_at: Time,
  },
  { $id: 'PredictionOpenOrder' },
)
setColumns(OpenOrder, ['id', 'title', 'outcome', 'side', 'original_size', 'price', 'status'])

const orderBody = {
  outcome_id: T.Optional(OutcomeIdIn()),
  token_id: T.Optional(OutcomeIdIn('Another name of `outcome_id`')),
  venue: T.Optional(Venue),
  side: Side,
  order_type: T.Optional(OrderType),
  price: T.Optional(
    Price(
      'Limit price of GTC and GTD, on the tick of the market; for FOK and FAK another name of `worst_price`',
    ),
  ),
  worst_price: T.Optional(Price('Worst price at which FOK and FAK fill')),
  size: T.Optional(Shares('Shares of a GTC or GTD order')),
  amount_usd: T.Optional(Usd('What a FOK or FAK purchase may cost with its fee')),
  amount_shares: T.Optional(Shares('Shares that a FOK or FAK order sells')),
  expiration: T.Optional(
    T.Integer({
      minimum: 1,
      maximum: 100_000_000_000,
      description: 'When a GTD order ends, in Unix seconds: at least 180 seconds ahead',
    }),
  ),
  expiration_seconds: T.Optional(
    T.Integer({ minimum: 180, maximum: 31_536_000, description: 'How long a GTD order rests, in seconds' }),
  ),
  post_only: T.Optional(
    T.Boolean({ description: 'True refuses a GTC or GTD order that would match at once; false if left out' }),
  ),
  max_fee_usd: T.Optional(
    DecIn({
      minimum: 0,
      maximum: 1_000_000,
      places: 6,
      description: 'Highest fee that is accepted, in USD',
      example: '0.5',
    }),
  ),
  quote_id: T.Optional(
    T.String({
      minLength: 1,
      maxLength: 64,
      description: 'A quote of `predmkt_quote`, whose worst price is then the bound',
    }),
  ),
  take_profit_price: T.Optional(Price('Price at which the bought shares are sold with a profit', '0.9')),
  take_profit_percentage: T.Optional(
    DecIn({
      exclusiveMinimum: 0,
      maximum: 10_000,
      places: 4,
      description: 'Distance of the take-profit above the average purchase price, in percent',
      example: '25',
    }),
  ),
  stop_loss_price: T.Optional(
    Price(
      'The bought shares are sold once the bid is at or below this price, for no less than 75 % of it, or of the price of the market if that is lower',
      '0.4',
    ),
  ),
}

export const orderEntries = {
  order: task('POST /predmkt/order', {
    summary: 'Buy or sell shares of an outcome, with a limit or at market price',
    description:
      'Use it to trade an outcome. A limit order (GTC or GTD) takes `price` and `size`; a market order (FOK or FAK) takes `amount_usd` for a purchase, fee included, or `amount_shares` for a sale. `take_profit_price` or `take_profit_percentage`, and `stop_loss_price`, protect a purchase: they sell its shares once these are settled, and the first that fills cancels the other. Matched shares are yours only when their settlement is `confirmed`; the task waits for that. Next: poll `tasks_get`, or send `wait=true`; then `predmkt_positions`, and `predmkt_open_orders` for what rests.',
    access: 'trade',
    rate: 'money',
    waitSeconds,
    body: T.Object(orderBody, {
      $id: 'PredictionOrderRequest',
      examples: [
        {
          outcome_id: '45601394554497090173642354630373884477724604907691447337031201817815960365378',
          side: 'BUY',
          order_type: 'FOK',
          amount_usd: '20',
        },
      ],
    }),
    output: TaskResponse,
    result: OrderResult,
    faults: [
      ...taskFaults,
      'approval_required',
      'disclaimer_required',
      'venue_restricted',
      'insufficient_balance',
      'no_position',
      'shares_not_settled',
      'market_closed',
      'quote_expired',
      'insufficient_liquidity',
      'conflict',
    ],
  }),
  cancel: task('POST /predmkt/order/cancel', {
    summary: 'Cancel an order, all orders of a market, or all orders',
    description:
      'Use it to take orders back: give exactly one of `order_id`, `order_ids`, `condition_id` and `cancel_all`. Shares that were matched before stay bought or sold. `result.not_canceled` names every order that was not cancelled, with the reason; the outcome is then `partial`. Next: `predmkt_open_orders`.',
    access: 'trade',
    rate: 'exit',
    priority: 0,
    repeatable: true,
    waitSeconds: 60,
    body: T.Object(
      {
        order_id: T.Optional(
          T.String({
            minLength: 1,
            maxLength: 80,
            description: 'Order, by its `id` in the list of open orders',
          }),
        ),
        order_ids: T.Optional(
          T.Array(T.String({ minLength: 1, maxLength: 80, description: 'Order id' }), {
            minItems: 1,
            maxItems: 1_000,
            description: 'Several orders, by their ids',
          }),
        ),
        condition_id: T.Optional(ConditionIdIn('All orders of the market with this condition')),
        market_id: T.Optional(ConditionIdIn('Another name of `condition_id`')),
        outcome_id: T.Optional(OutcomeIdIn('With `condition_id`: only orders of this outcome')),
        cancel_all: T.Optional(T.Boolean({ description: 'True cancels every order' })),
      },
      {
        $id: 'PredictionCancelRequest',
        examples: [{ order_id: '0x6b2f0e4a86f0b1c7c4f8a3f6d2f9b1d0e7c5a4938271605f4e3d2c1b0a998877' }],
      },
    ),
    output: TaskResponse,
    result: CancelResult,
    faults: ['setup_incomplete', 'not_found', 'unavailable', 'upstream_changed'],
  }),
  openOrders: read('GET /predmkt/orders/open', {
    summary: 'Open orders in the books, and exits that wait or are watched',
    description:
      'Use it to see what rests, how much of it is matched, and the ids that the cancel takes. Next: `predmkt_cancel`.',
    access: 'read',
    output: T.Object({ orders: T.Array(OpenOrder), as_of: Time }, { $id: 'PredictionOpenOrdersResponse' }),
    faults: ['setup_incomplete', ...readFaults],
  }),
}
