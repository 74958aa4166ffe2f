import * as T from '#kernel/contract/schema.ts'

/** The replies of the catalogue. Field names of the venue stay in the wire files and their parsers. */

const text = T.String()
const number = T.Union([T.String(), T.Number()])
const maybe = <S extends T.TSchema>(schema: S) => T.Optional(T.Union([schema, T.Null()]))
/** A list inside of a string, or a list. */
const listText = T.Union([T.String(), T.Array(T.Union([T.String(), T.Number()]))])

/** https://docs.polymarket.com/trading/fees */
const FeeSchedule = T.Object({ exponent: number, rate: number })

const EventReference = T.Object({
  id: T.Union([T.String(), T.Integer()]),
  slug: maybe(text),
  title: maybe(text),
})

const marketFields = {
  id: text,
  conditionId: text,
  slug: text,
  question: text,
  description: maybe(text),
  category: maybe(text),
  image: maybe(text),
  endDate: maybe(text),
  outcomes: listText,
  outcomePrices: maybe(listText),
  clobTokenIds: maybe(listText),
  /** Ids of the second protocol. https://docs.polymarket.com/migrate/polymarket-v2/api */
  positionIds: maybe(listText),
  version: maybe(text),
  negRisk: maybe(T.Boolean()),
  closed: maybe(T.Boolean()),
  acceptingOrders: maybe(T.Boolean()),
  enableOrderBook: maybe(T.Boolean()),
  orderPriceMinTickSize: maybe(number),
  orderMinSize: maybe(number),
  secondsDelay: maybe(T.Integer()),
  feesEnabled: maybe(T.Boolean()),
  feeSchedule: maybe(FeeSchedule),
  bestBid: maybe(number),
  bestAsk: maybe(number),
  lastTradePrice: maybe(number),
  volume: maybe(number),
  volume24hr: maybe(number),
  liquidity: maybe(number),
  umaResolutionStatus: maybe(text),
}

/** https://docs.polymarket.com/api-reference/markets/list-markets */
export const GammaMarket = T.Object({ ...marketFields, events: maybe(T.Array(EventReference)) })
export type GammaMarket = T.Static<typeof GammaMarket>

/** https://docs.polymarket.com/api-reference/events/list-events */
export const GammaEvent = T.Object({
  id: T.Union([T.String(), T.Integer()]),
  slug: text,
  title: text,
  description: maybe(text),
  category: maybe(text),
  image: maybe(text),
  negRisk: maybe(T.Boolean()),
  closed: maybe(T.Boolean()),
  endDate: maybe(text),
  volume: maybe(number),
  /** Checked one by one, so that a market of another form hides none of the others. */
  markets: maybe(T.Array(T.Unsafe<unknown>({}))),
})
export type GammaEvent = T.Static<typeof GammaEvent>

const rows = T.Array(T.Unsafe<unknown>({}))
/** https://docs.polymarket.com/api-reference/markets/list-markets-keyset-pagination */
export const MarketPage = T.Object({ markets: rows, next_cursor: maybe(text) })
export const EventPage = T.Object({ events: rows, next_cursor: maybe(text) })
/** https://docs.polymarket.com/api-reference/search/search-markets-events-and-profiles */
export const SearchPage = T.Object({
  events: T.Union([rows, T.Null()]),
  pagination: maybe(T.Object({ hasMore: maybe(T.Boolean()) })),
})
export const MarketList = rows
/** Its fields are checked by the parser. https://docs.polymarket.com/api-reference/events/get-event-by-id */
export const EventRecord = T.Object({}, { additionalProperties: true })
