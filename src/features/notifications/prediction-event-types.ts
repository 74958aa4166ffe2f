import * as T from '#kernel/contract/schema.ts'
import { OneOf, Time } from '#kernel/contract/wire-types.ts'

/** The data of the events of prediction markets. */

const open = { additionalProperties: true }
const PredictionTradeEvent = T.Object(
  {
    venue: T.String({ description: 'The venue of the market' }),
    trade_id: T.String({ description: 'Trade at the venue' }),
    order_id: T.String({ description: 'Order that was filled' }),
    task_id: T.Union([T.String(), T.Null()], {
      description: 'Task that placed the order; null where it has ended',
    }),
    condition_id: T.String({ description: 'Condition that the outcome belongs to' }),
    outcome_id: T.String({ description: 'The outcome that was traded' }),
    outcome: T.String({ description: 'Name of the outcome, in the words of the venue' }),
    title: T.String({ description: 'The question, in the words of the venue' }),
    side: OneOf(['BUY', 'SELL'] as const, { description: 'Direction of the order' }),
    role: OneOf(['maker', 'taker'] as const, { description: 'Whether the order rested, or matched at once' }),
    size: T.String({ description: 'Shares, in whole tokens (decimal text)' }),
    price: T.String({ description: 'Price in USD for one share (decimal text)' }),
    fee_usd: T.String({ description: 'Fee of the venue, in USD (decimal text)' }),
    settlement: T.String({ description: 'State of the settlement; only confirmed is money or shares' }),
    tx_hash: T.Union([T.String(), T.Null()], { description: 'Transaction of the settlement; null before' }),
    at: Time,
  },
  { $id: 'PredictionTradeEventData', ...open },
)
const PredictionOrderWiped = T.Object(
  {
    venue: T.String({ description: 'The venue of the market' }),
    order_id: T.String({ description: 'Order that the venue, or another client of the user, has cancelled' }),
    task_id: T.String({ description: 'Task that placed the order' }),
    condition_id: T.String({ description: 'Condition that the outcome belongs to' }),
    outcome_id: T.String({ description: 'The outcome that was traded' }),
    leg: OneOf(['order', 'tp', 'sl'] as const, { description: 'order, take-profit or stop-loss' }),
    size: T.String({ description: 'Shares of the order, in whole tokens (decimal text)' }),
    matched: T.String({ description: 'Matched shares, in whole tokens (decimal text)' }),
    at: Time,
  },
  { $id: 'PredictionOrderCancelledData', ...open },
)
const PredictionExitData = T.Object(
  {
    venue: T.String({ description: 'The venue of the market' }),
    exit_id: T.String({ description: 'The exit, by its `id` in the list of open orders' }),
    order_id: T.String({ description: 'Order of the purchase whose shares it protected' }),
    task_id: T.String({ description: 'Task of the purchase' }),
    condition_id: T.String({ description: 'Condition that the outcome belongs to' }),
    outcome_id: T.String({ description: 'The outcome that was bought' }),
    leg: OneOf(['tp', 'sl'] as const, { description: 'take-profit or stop-loss' }),
    reason: T.String({ description: 'Why it sells nothing, now or any more' }),
    at: Time,
  },
  { $id: 'PredictionExitData', ...open },
)

export const predictionEvents = {
  'predmkt.trade.matched': PredictionTradeEvent,
  'predmkt.trade.confirmed': PredictionTradeEvent,
  'predmkt.trade.failed': PredictionTradeEvent,
  'predmkt.order.cancelled_by_venue': PredictionOrderWiped,
  'predmkt.exit.cancelled': PredictionExitData,
  'predmkt.exit.held_back': PredictionExitData,
}
