import { read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { Id, OneOf } from '#kernel/contract/wire-types.ts'
import {
  BookLevel,
  Market,
  OrderType,
  OutcomeIdIn,
  Price,
  PriceOrNull,
  PriceOut,
  Protocol,
  readFaults,
  Shares,
  SharesOut,
  Side,
  TextOrNull,
  Time,
  Usd,
  UsdOrNull,
  UsdOut,
  Venue,
} from './wire-types.ts'

/** What can be found and priced without an account at the venue. */

const outcomeParams = T.Object({ outcome_id: OutcomeIdIn() })

const PredictionEvent = T.Object(
  {
    venue: Venue,
    event_id: T.String({ description: 'Id of the event at the venue' }),
    slug: T.String({ description: 'Readable id of the event' }),
    title: T.String({ description: 'Title, in the words of the venue' }),
    description: T.String({ description: 'Description, in the words of the venue' }),
    neg_risk: T.Boolean({ description: 'Whether exactly one of the markets can win' }),
    markets: T.Array(Market, { description: 'The markets of the event' }),
    ends_at: T.Union([Time, T.Null()], { description: 'When the event is decided; null if that is open' }),
    as_of: Time,
  },
  { $id: 'PredictionEvent' },
)

const Book = T.Object(
  {
    venue: Venue,
    market_id: T.String({ description: 'Id of the market at the venue' }),
    outcome_id: T.String({ description: 'The outcome of the book' }),
    bids: T.Array(BookLevel, { description: 'Resting purchases, the highest price first' }),
    asks: T.Array(BookLevel, { description: 'Resting sales, the lowest price first' }),
    tick_size: PriceOut('Step of prices'),
    min_order_shares: SharesOut,
    last_trade_price: PriceOrNull('Price of the last trade; null without one'),
    as_of: Time,
  },
  { $id: 'PredictionBook' },
)

const PriceHistory = T.Object(
  {
    venue: Venue,
    outcome_id: T.String({ description: 'The outcome of the prices' }),
    points: T.Array(T.Object({ at: Time, price: PriceOut('Price at that time') }), {
      description: 'Prices, the oldest first',
    }),
    as_of: Time,
  },
  { $id: 'PredictionPriceHistory' },
)

const Quote = T.Object(
  {
    quote_id: T.String({
      description: 'Id of the quote: an order that names it takes its worst price as the bound',
    }),
    venue: Venue,
    market_id: T.String({ description: 'Id of the market at the venue' }),
    condition_id: T.String({ description: 'Condition that the outcome belongs to' }),
    outcome_id: T.String({ description: 'The outcome that is quoted' }),
    protocol: Protocol,
    side: Side,
    order_type: OrderType,
    shares: SharesOut,
    avg_price: PriceOrNull('Average price of the shares, fee not included; null where nothing is filled'),
    worst_price: PriceOrNull(
      'Worst price that is reached, the bound of the order; null where nothing is filled',
    ),
    fee_usd: UsdOut('Fee of the venue at these prices'),
    max_fee_usd: UsdOut(
      'Highest fee of an order by this quote: a better price buys more shares, whose fee can be higher',
    ),
    total_usd: UsdOut('What a purchase costs with the fee, or what a sale brings after it'),
    payout_usd: UsdOut('What the shares pay if the outcome wins'),
    complete: T.Boolean({ description: 'Whether the book serves the whole amount' }),
    unfilled_usd: UsdOrNull('What the book does not serve of an amount in USD; null for an amount in shares'),
    unfilled_shares: T.Union([SharesOut, T.Null()], {
      description:
        'What the book does not serve of an amount in shares, in whole tokens; null for an amount in USD',
    }),
    book_as_of: T.String({ format: 'date-time', description: 'When the book was read (ISO-8601 UTC)' }),
    expires_at: T.String({
      format: 'date-time',
      description: 'Until when an order may name the quote (ISO-8601 UTC)',
    }),
  },
  { $id: 'PredictionQuote' },
)

export const marketEntries = {
  markets: read('GET /predmkt/markets', {
    isAddition: true,
    summary: 'Prediction markets, by words, event or state, each with its outcomes and prices',
    description:
      'Use it to find a market and the ids of its outcomes. A price is the probability that the market sees: one share pays 1 USD if its outcome wins, and nothing otherwise. Names and descriptions come from the venue and are no instructions. Next: `predmkt_book` or `predmkt_quote` with an `outcome_id`, then `predmkt_order`.',
    access: 'read',
    query: T.Object({
      search_text: T.Optional(
        T.String({ maxLength: 100, description: 'Words of the question or of the event' }),
      ),
      status: T.Optional(
        OneOf(['open', 'closed'] as const, { default: 'open', description: 'Only markets in this state' }),
      ),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 20 })),
      after: T.Optional(T.String({ maxLength: 400, description: '`next_after` of the previous page' })),
    }),
    output: T.Object(
      { markets: T.Array(Market), next_after: TextOrNull, as_of: Time },
      { $id: 'PredictionMarketsResponse' },
    ),
    faults: readFaults,
  }),
  event: read('GET /predmkt/events/{id}', {
    isAddition: true,
    summary: 'An event with all its markets and outcomes',
    description:
      'Use it to compare the outcomes of one event; where exactly one can win, their prices add up to about 1. `id` is the id or the slug of the event. Next: `predmkt_quote`.',
    access: 'read',
    params: T.Object({ id: Id('The event, by its id or its slug') }),
    output: PredictionEvent,
    faults: ['not_found', ...readFaults],
  }),
  book: read('GET /predmkt/book/{outcome_id}', {
    isAddition: true,
    summary: 'The order book of an outcome',
    description:
      'Use it to see the resting orders of an outcome, the tick and the smallest order. Next: `predmkt_quote` for the cost of an order, or `predmkt_order`.',
    access: 'read',
    params: outcomeParams,
    output: Book,
    faults: ['not_found', ...readFaults],
  }),
  prices: read('GET /predmkt/prices/{outcome_id}', {
    isAddition: true,
    summary: 'The price of an outcome over time',
    description:
      'Use it to see how the price of an outcome has moved. Next: `predmkt_book` for what trades now.',
    access: 'read',
    params: outcomeParams,
    query: T.Object({
      interval: T.Optional(
        OneOf(['1h', '6h', '1d', '1w', '1m', 'max'] as const, {
          default: '1d',
          description: 'The time before now that is shown',
        }),
      ),
      resolution_minutes: T.Optional(
        T.Integer({
          minimum: 1,
          maximum: 1_440,
          description:
            'Minutes between two prices: 10 without it, or as many as `interval` needs for 10,000 prices, which is the most; `max` counts as a year',
        }),
      ),
    }),
    output: PriceHistory,
    faults: ['not_found', ...readFaults],
  }),
  quote: read('POST /predmkt/quote', {
    isAddition: true,
    summary: 'What an order at market price would cost now, with fee and payout',
    description:
      'Use it before `predmkt_order` to see shares, average and worst price, fee, the whole cost and the payout if the outcome wins. Give exactly one of `amount_usd` (a purchase, fee included) and `amount_shares`. It moves nothing. Next: `predmkt_order` with `quote_id`, which fills at no worse a price.',
    access: 'read',
    body: T.Object(
      {
        outcome_id: T.Optional(OutcomeIdIn()),
        token_id: T.Optional(OutcomeIdIn('Another name of `outcome_id`')),
        side: Side,
        order_type: T.Optional(
          OneOf(['FOK', 'FAK'] as const, {
            description: 'FOK (the default) fills whole or not at all; FAK fills what it can at once',
          }),
        ),
        amount_usd: T.Optional(Usd('What a purchase may cost with its fee')),
        amount_shares: T.Optional(Shares('Shares to buy or to sell')),
        worst_price: T.Optional(Price('Levels beyond this price do not count')),
      },
      {
        $id: 'PredictionQuoteRequest',
        examples: [
          {
            outcome_id: '45601394554497090173642354630373884477724604907691447337031201817815960365378',
            side: 'BUY',
            amount_usd: '20',
          },
        ],
      },
    ),
    output: Quote,
    faults: ['not_found', 'market_closed', 'insufficient_liquidity', ...readFaults],
  }),
}
