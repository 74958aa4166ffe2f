import { setColumns } from '#kernel/contract/columns.ts'
import { read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { OneOf } from '#kernel/contract/wire-types.ts'
import {
  PriceOrNull,
  PriceOut,
  Protocol,
  readFaults,
  Settlement,
  SharesOut,
  Side,
  Text,
  TextOrNull,
  Time,
  UsdOrNull,
  UsdOut,
  Venue,
} from './wire-types.ts'

/** What the user owns, and what was traded. */

const PredictionPosition = T.Object(
  {
    venue: Venue,
    market_id: T.String({ description: 'Id of the market at the venue' }),
    condition_id: T.String({ description: 'Condition that the outcome belongs to, as redeem takes it' }),
    outcome_id: T.String({ description: 'The outcome that the shares belong to' }),
    outcome: T.String({ description: 'Name of the outcome, in the words of the venue' }),
    title: T.String({ description: 'The question, in the words of the venue' }),
    protocol: Protocol,
    neg_risk: T.Boolean({ description: 'Whether exactly one outcome of the event can win' }),
    size: T.String({ description: 'Settled shares, in whole tokens (decimal text)' }),
    unsettled_buy: T.String({
      description: 'Shares of purchases that are matched and not settled, in whole tokens',
    }),
    unsettled_sell: T.String({
      description: 'Shares of sales that are matched and not settled, in whole tokens',
    }),
    avg_price: PriceOrNull('Average purchase price with fees; null where purchases are unknown'),
    cost_usd: UsdOrNull('Cost of the settled shares with fees; null where purchases are unknown'),
    current_price: PriceOrNull('Bid of the book, or the payout once resolved; null without either'),
    value_usd: UsdOrNull('Value of the settled shares at the current price; null without one'),
    unrealized_usd: UsdOrNull('Value less cost; null where one of them is unknown'),
    realized_usd: UsdOut('Profit of confirmed sales and redemptions'),
    redeemable: T.Boolean({ description: 'Whether the market is resolved on chain, so that redeem pays' }),
    resolves_at: T.Union([Time, T.Null()], {
      description: 'When the question is decided; null if that is open',
    }),
  },
  { $id: 'PredictionPosition' },
)
setColumns(PredictionPosition, [
  'title',
  'outcome',
  'size',
  'avg_price',
  'current_price',
  'value_usd',
  'unrealized_usd',
])

const Trade = T.Object(
  {
    id: T.String({ description: 'Id of the trade at the venue' }),
    order_id: T.String({ description: 'Order that was filled' }),
    venue: Venue,
    side: Side,
    role: OneOf(['maker', 'taker'] as const, { description: 'Whether the order rested, or matched at once' }),
    asset: T.String({ description: 'Same as outcome_id' }),
    outcome_id: T.String({ description: 'The outcome that was traded' }),
    condition_id: T.String({ description: 'Condition that the outcome belongs to' }),
    outcome: T.String({ description: 'Name of the outcome, in the words of the venue' }),
    size: SharesOut,
    price: PriceOut('Price'),
    fee: UsdOut('Fee of the venue'),
    title: T.String({ description: 'The question, in the words of the venue' }),
    tx_hash: TextOrNull,
    settlement: Settlement,
    task_id: T.Union([Text, T.Null()], {
      description: 'Task of the order; null for orders of another client',
    }),
    timestamp: T.String({ format: 'date-time', description: 'When it was matched (ISO-8601 UTC)' }),
  },
  { $id: 'PredictionTrade' },
)
setColumns(Trade, ['timestamp', 'title', 'outcome', 'side', 'size', 'price', 'settlement'])
const ActivityItem = T.Object(
  {
    id: T.String({ description: 'Id of the entry' }),
    type: OneOf(['redeem', 'deposit', 'withdrawal'] as const, { description: 'What was done' }),
    condition_id: T.Union([Text, T.Null()], {
      description: 'Condition that was redeemed; null for other entries',
    }),
    amount_usd: UsdOut('Amount'),
    by: OneOf(['us', 'venue'] as const, { description: 'Who did it: the gateway, or the venue by itself' }),
    tx_hash: TextOrNull,
    timestamp: T.String({ format: 'date-time', description: 'When it happened (ISO-8601 UTC)' }),
  },
  { $id: 'PredictionActivityItem' },
)

export const recordEntries = {
  positions: read('GET /predmkt/positions', {
    isAddition: true,
    summary: 'Shares that you own, with cost, value and profit',
    description:
      'Use it to see what you own. Only settled shares count in `size`; matched ones that may still fail stand beside it. Next: `predmkt_order` with `side: SELL`, or `predmkt_redeem` for `redeemable` ones.',
    access: 'read',
    output: T.Object(
      {
        positions: T.Array(PredictionPosition),
        positions_value_usd: UsdOut('Value of all positions with a price'),
        as_of: Time,
      },
      { $id: 'PredictionPositionsResponse' },
    ),
    faults: readFaults,
  }),
  activity: read('GET /predmkt/activity', {
    summary: 'Trades, redemptions, deposits and withdrawals, with profit and loss',
    description:
      'Use it to see what was traded and what it brought, newest first. Profit counts confirmed trades alone. Next: `predmkt_positions`.',
    access: 'read',
    query: T.Object({
      limit: T.Optional(
        T.Integer({ minimum: 1, maximum: 500, default: 200, description: 'Trades per answer' }),
      ),
    }),
    output: T.Object(
      {
        trades: T.Array(Trade, { description: 'Trades, the newest first' }),
        items: T.Array(ActivityItem, {
          description: 'Redemptions, deposits and withdrawals, the newest first',
        }),
        pnl: T.Object(
          {
            realized_usd: UsdOut('Profit of confirmed sales and redemptions'),
            unrealized_usd: UsdOut('Value less cost of the positions with a price'),
            as_of: Time,
          },
          { description: 'Profit and loss' },
        ),
        positions_value_usd: UsdOut('Value of all positions with a price'),
      },
      { $id: 'PredictionActivityResponse' },
    ),
    faults: readFaults,
  }),
}
