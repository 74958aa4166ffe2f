import { readFaults } from '#engines/venue/records/contract-schemas.ts'
import { group, type InputOf, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { OneOf, Text, Time } from '#kernel/contract/wire-types.ts'
import { decimalPattern } from '#kernel/money/money.ts'
import { candleSpans } from '#market/candle.ts'

export const candlesMax = 1_000
const candlesDefault = 200
export const fundingDaysMax = 90
export const bookLevelsMax = 20

const marketPath = T.Object({
  asset: T.String({
    minLength: 1,
    maxLength: 64,
    description: 'A perpetual market, as `perp_markets` lists it',
    examples: ['BTC'],
  }),
})
const time = (description: string) =>
  T.Optional(
    T.String({ format: 'date-time', maxLength: 40, description, examples: ['2026-01-31T12:00:00.000Z'] }),
  )

const price = (description: string) =>
  T.String({ pattern: decimalPattern, description: `${description} in USD` })
const Candle = T.Object(
  {
    start: Time,
    open: price('First price'),
    high: price('Highest price'),
    low: price('Lowest price'),
    close: price('Last price'),
    volume: T.String({ pattern: decimalPattern, description: 'What was traded, in the asset' }),
  },
  { $id: 'MarketCandle' },
)
const CandleGap = T.Object(
  {
    from: Time,
    to: Time,
    candles: T.Integer({ description: 'How many are missing' }),
  },
  { $id: 'MarketCandleGap' },
)

const side = (description: string) =>
  T.Array(
    T.Object(
      { price: price('Price'), size: T.String({ description: 'What is offered there, in the asset' }) },
      { $id: 'MarketBookLevel' },
    ),
    { description },
  )

const about = 'What the prices and the funding of perpetual markets were, and their order books.'
export const contract = group('markets', about, {
  book: read('GET /v1/markets/{asset}/book', {
    isAddition: true,
    summary: 'Order book of a perpetual market, the best prices first',
    description:
      'Use it to see what a market order would meet: the spread, and how much is offered at each price. Next: `perp_open`.',
    access: 'read',
    params: marketPath,
    query: T.Object({
      levels: T.Optional(
        T.Integer({
          minimum: 1,
          maximum: bookLevelsMax,
          default: bookLevelsMax,
          description: 'How many prices of each side',
        }),
      ),
    }),
    output: T.Object(
      {
        asset: Text,
        as_of: Time,
        bids: side('What others buy, the highest price first'),
        asks: side('What others sell, the lowest price first'),
      },
      { $id: 'MarketBookResponse' },
    ),
    faults: [...readFaults, 'market_closed'],
  }),
  candles: read('GET /v1/markets/{asset}/candles', {
    isAddition: true,
    summary: 'Closed candles of a perpetual market, oldest first',
    mainTool: {
      text: 'Price history: candles of a perpetual market such as BTC, with high and low, hourly or daily, for the last day, week or month. Take `perp_markets` for the price now.',
      fields: { asset: 'Market, such as BTC', interval: '', limit: 'The newest so many', from: '', to: '' },
    },
    description: `Use it to see how a price moved, and to check what a strategy was decided from. The candle that is still open is never among them. \`gaps\` has the times of which no candle is known. A series that somebody reads is kept for 35 days of minutes, and for 50,400 candles of every other length. Next: \`markets_funding\`, or \`perp_open\`.`,
    access: 'read',
    params: marketPath,
    query: T.Object({
      interval: T.Optional(OneOf(candleSpans, { default: '1h', description: 'The length of a candle' })),
      from: time('No candle begins before; left out: as many as `limit`'),
      to: time('No candle ends after; left out: the newest close'),
      limit: T.Optional(
        T.Integer({
          minimum: 1,
          maximum: candlesMax,
          default: candlesDefault,
          description: 'The newest of that time, at most so many',
        }),
      ),
    }),
    output: T.Object(
      {
        asset: Text,
        interval: OneOf(candleSpans, { description: 'The length of a candle' }),
        as_of: Time,
        candles: T.Array(Candle, { description: 'Closed candles, oldest first' }),
        gaps: T.Array(CandleGap, { description: 'Times of which no candle is known' }),
      },
      { $id: 'MarketCandlesResponse' },
    ),
    faults: [...readFaults, 'market_closed'],
  }),
  funding: read('GET /v1/markets/{asset}/funding', {
    isAddition: true,
    summary: 'Hourly funding rates of a perpetual market, oldest first',
    description:
      'Use it to see what a position would have paid or received: longs pay a rate above zero to shorts, of the worth of the position. Next: `markets_candles`, or `perp_open`.',
    access: 'read',
    params: marketPath,
    query: T.Object({
      days: T.Optional(
        T.Integer({
          minimum: 1,
          maximum: fundingDaysMax,
          default: 7,
          description: 'How many days back',
        }),
      ),
    }),
    output: T.Object(
      {
        asset: Text,
        as_of: Time,
        rates: T.Array(
          T.Object(
            { at: Time, rate: T.String({ description: 'Funding of the hour, as a fraction' }) },
            { $id: 'MarketFundingRate' },
          ),
          { description: 'One for each hour, oldest first' },
        ),
      },
      { $id: 'MarketFundingResponse' },
    ),
    faults: [...readFaults, 'market_closed'],
  }),
})

export type MarketsInput<Key extends keyof typeof contract.entries> = InputOf<(typeof contract.entries)[Key]>
