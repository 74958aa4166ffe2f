import { setColumns } from '#kernel/contract/columns.ts'
import * as T from '#kernel/contract/schema.ts'
import {
  Dec,
  DecIn,
  DecOrNull,
  OneOf,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
} from '#kernel/contract/wire-types.ts'

/** The parts of a request or an answer that several operations on prediction markets share. */

export const readFaults = ['unavailable', 'upstream_timeout', 'upstream_changed']
export const taskFaults = [
  'policy_denied',
  'trading_paused',
  'setup_incomplete',
  'unavailable',
  'upstream_changed',
]

export const outcomePattern = '^[0-9]{1,78}$'
export const conditionPattern = '^0x[0-9a-fA-F]{62,64}$'
const outcomeExample = '45601394554497090173642354630373884477724604907691447337031201817815960365378'
const conditionExample = '0x3d69cc55e7b3d6f2d1a1f0e0b5c4a39281706f5e4d3c2b1a09f8e7d6c5b4f137'

/** Bounds of prices, sizes and amounts: above any market value, and safe for the arithmetic. */
export const positive = { exclusiveMinimum: 0, maximum: 1_000_000_000 }

export const OutcomeIdIn = (description = 'The outcome, by its id in the list of markets') =>
  T.String({ pattern: outcomePattern, maxLength: 78, description, examples: [outcomeExample] })
export const ConditionIdIn = (description: string) =>
  T.String({ pattern: conditionPattern, maxLength: 66, description, examples: [conditionExample] })
export const Price = (description: string, example = '0.62') =>
  DecIn({
    exclusiveMinimum: 0,
    maximum: 1,
    places: 6,
    description: `${description}, in USD for one share: above 0 and below 1`,
    example,
  })
export const Shares = (description: string, example = '25') =>
  DecIn({
    ...positive,
    places: 6,
    description: `${description}, in whole tokens: one share pays 1 USD`,
    example,
  })
export const Usd = (description: string, example = '20') =>
  DecIn({ ...positive, places: 6, description: `${description}, in USD`, example })

export const Side = OneOf(['BUY', 'SELL'] as const, { description: 'Direction of the order' })
export const OrderType = OneOf(['GTC', 'GTD', 'FOK', 'FAK'] as const, {
  description:
    'GTC rests until it is filled or cancelled, GTD until it expires, FOK fills whole or not at all, FAK fills what it can at once',
})
export const Protocol = OneOf(['v1', 'v2'] as const, {
  description: 'The protocol of the venue that the market belongs to',
})
export const Venue = OneOf(['polymarket'] as const, { description: 'The venue of the market' })
export const Settlement = OneOf(
  ['matched_not_broadcasted', 'matched', 'mined', 'confirmed', 'retrying', 'failed'] as const,
  { description: 'How far the settlement is; a fill is money or shares only once it is `confirmed`' },
)

export const SharesOut = T.String({ ...Dec, description: 'Shares, in whole tokens (decimal text)' })
export const UsdOut = (description: string) =>
  T.String({ ...Dec, description: `${description}, in USD (decimal text)` })
export const UsdOrNull = (description: string) =>
  T.Union([Dec, T.Null()], { description: `${description}, in USD (decimal text)` })
export const PriceOut = (description: string) =>
  T.String({ ...Dec, description: `${description}, in USD for one share (decimal text)` })
export const PriceOrNull = (description: string) =>
  T.Union([Dec, T.Null()], { description: `${description}, in USD for one share (decimal text)` })

export const Outcome = T.Object(
  {
    outcome_id: T.String({ description: 'Id of the outcome, as orders take it' }),
    outcome: T.String({ description: 'Name of the outcome, in the words of the venue' }),
    price: PriceOrNull('Price at the venue; null without one'),
    payout: PriceOrNull('What one share pays once the market is resolved; null before'),
  },
  { $id: 'PredictionOutcome' },
)
setColumns(Outcome, ['outcome_id', 'outcome', 'price'])

export const Market = T.Object(
  {
    venue: Venue,
    market_id: T.String({ description: 'Id of the market at the venue' }),
    condition_id: T.String({
      description: 'Condition that the outcomes belong to, as redeem and cancel take it',
    }),
    event_id: T.Union([Text, T.Null()], { description: 'Event of the market; null without one' }),
    slug: T.String({ description: 'Readable id of the market' }),
    question: T.String({ description: 'The question, in the words of the venue' }),
    description: T.String({ description: 'How the market is resolved, in the words of the venue' }),
    status: OneOf(['open', 'closed', 'resolved'] as const, { description: 'State of the market' }),
    accepting_orders: T.Boolean({ description: 'Whether the venue takes orders for the market now' }),
    protocol: Protocol,
    neg_risk: T.Boolean({ description: 'Whether exactly one outcome of the event can win' }),
    tick_size: PriceOut('Step of prices'),
    min_order_shares: SharesOut,
    outcomes: T.Array(Outcome, { description: 'The outcomes, each with its price' }),
    volume_24h_usd: UsdOrNull('Volume of 24 hours; null where the venue does not say it'),
    liquidity_usd: UsdOrNull('Value of resting orders; null where the venue does not say it'),
    ends_at: T.Union([Time, T.Null()], { description: 'When the question is decided; null if that is open' }),
  },
  { $id: 'PredictionMarket' },
)
setColumns(Market, ['question', 'outcomes', 'volume_24h_usd', 'ends_at', 'status'])

export const BookLevel = T.Object(
  { price: PriceOut('Price of the level'), size: SharesOut },
  { $id: 'PredictionBookLevel' },
)

export { Dec, DecOrNull, Text, TextOrNull, Time, TimeOrNull }
