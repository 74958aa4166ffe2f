import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import {
  type MarketFilter,
  type Paged,
  type PredictionEvent,
  type PredictionVenue,
  pricePointsMax,
} from '#kernel/money/prediction-venue.ts'
import type { Book, PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { AddBuilderFee } from './builder-fees.ts'
import { dateOf, priceOf } from './decimals.ts'
import { highestOrderFee } from './fee-bound.ts'
import { protocolOf } from './outcome-ids.ts'
import { type OnSkipped, parseBook, parseEvents, parseMarkets, venueName } from './parse-markets.ts'
import { quoteBook } from './quote-book.ts'
import type { Call, Requests } from './requests.ts'
import { feeOfTraded } from './route-order.ts'
import { BookList, ClobMarket, PriceHistory, WireBook } from './wire-clob.ts'
import { EventPage, EventRecord, MarketList, MarketPage, SearchPage } from './wire-gamma.ts'

/** Finds markets, and reads their books and prices. */

type Catalogue = Pick<
  PredictionVenue,
  | 'markets'
  | 'events'
  | 'event'
  | 'market'
  | 'marketsById'
  | 'book'
  | 'books'
  | 'prices'
  | 'quote'
  | 'highestFee'
>

/** https://docs.polymarket.com/api-reference/markets/list-markets-keyset-pagination */
const orderKeys: Record<NonNullable<MarketFilter['order']>, { key: string; isAscending: boolean }> = {
  volume: { key: 'volumeNum', isAscending: false },
  volume_24h: { key: 'volume24hr', isAscending: false },
  liquidity: { key: 'liquidityNum', isAscending: false },
  newest: { key: 'startDate', isAscending: false },
  ending: { key: 'endDate', isAscending: true },
}
const pageMax = 100
/** So many ids keep the address of a request below 5 KB. */
const idsMax = 50

const listQuery = ({ tag, isClosed, order, limit, cursor }: MarketFilter) => {
  const sort = order && orderKeys[order]
  return {
    limit: String(Math.min(limit, pageMax)),
    closed: isClosed === undefined ? undefined : String(isClosed),
    tag_slug: tag,
    order: sort?.key,
    ascending: sort && String(sort.isAscending),
    after_cursor: cursor,
  }
}

const gamma = (path: string, query: Call['query'] = {}): Call => ({ service: 'gamma', path, query })

/** A page of found events, and how many of its markets were listed before. */
type SearchPlace = { page: number; size: number; skip: number }

function placeOf({ cursor, limit }: MarketFilter): SearchPlace {
  if (cursor === undefined) return { page: 1, size: Math.min(limit, pageMax), skip: 0 }
  const [page = 0, size = 0, skip = 0] = /^\d{1,4}\.\d{1,3}\.\d{1,6}$/.test(cursor)
    ? cursor.split('.').map(Number)
    : []
  if (page > 0 && size > 0 && size <= pageMax) return { page, size, skip }
  throw new Fault('validation', 'The cursor is none of this list', { extras: { reason: 'cursor_invalid' } })
}
const cursorOf = ({ page, size, skip }: SearchPlace): string => `${page}.${size}.${skip}`

const unreadable = (what: string): Fault =>
  new Fault('upstream_changed', `Polymarket lists this ${what} with figures or ids of an unknown form`)

/** A market whose orders nothing can be said of is in no list. */
const isListable = ({ acceptsOrders, tickMicros }: PredictionMarket): boolean =>
  !acceptsOrders || tickMicros > 0n

export type MarketKey = Parameters<PredictionVenue['market']>[0]

/** Reads one market by each key under which the catalogue lists it. */
export function createMarketLookup({ readOptional }: Requests, onSkipped: OnSkipped) {
  const queryOf = (by: MarketKey): Record<string, string> => {
    if ('marketId' in by) return { condition_ids: by.marketId }
    if ('slug' in by) return { slug: by.slug }
    return protocolOf(by.outcomeId) === 'v2'
      ? { position_ids: by.outcomeId }
      : { clob_token_ids: by.outcomeId }
  }
  const isWanted = (market: PredictionMarket, by: MarketKey): boolean => {
    if ('marketId' in by) return market.marketId.toLowerCase() === by.marketId.toLowerCase()
    if ('slug' in by) return market.slug === by.slug
    return market.outcomes.some(({ outcomeId }) => outcomeId === by.outcomeId)
  }
  return async (by: MarketKey): Promise<PredictionMarket | undefined> => {
    let isUnreadable = false
    const onUnreadable: OnSkipped = (list, record) => {
      isUnreadable = true
      onSkipped(list, record)
    }
    // Some keys find closed markets only where they are asked for.
    for (const closed of [undefined, 'true']) {
      const records = await readOptional(gamma('/markets', { ...queryOf(by), closed }), MarketList)
      const found = parseMarkets(records ?? [], onUnreadable).find((market) => isWanted(market, by))
      if (found) return found
    }
    if (isUnreadable) throw unreadable('market')
    return undefined
  }
}

/** Reads many markets by few requests, in the order of the ids; one that the catalogue does not list is absent. */
const createMarketsById =
  ({ read }: Requests, onSkipped: OnSkipped): PredictionVenue['marketsById'] =>
  async (marketIds) => {
    const found = new Map<string, PredictionMarket>()
    for (let from = 0; from < marketIds.length; from += idsMax)
      for (const closed of [undefined, 'true']) {
        const missing = marketIds.slice(from, from + idsMax).filter((id) => !found.has(id))
        if (missing.length === 0) break
        const query = { condition_ids: missing, closed, limit: String(missing.length) }
        const markets = parseMarkets(await read(gamma('/markets', query), MarketList), onSkipped)
        for (const id of missing) {
          const market = markets.find(({ marketId }) => marketId.toLowerCase() === id.toLowerCase())
          if (market) found.set(id, market)
        }
      }
    return new Map(marketIds.flatMap((id) => (found.has(id) ? [[id, found.get(id)!]] : [])))
  }

/** A book of an unknown form must not hide the others. */
function knownBook(record: unknown): Book[] {
  if (!fits(WireBook, record)) return []
  try {
    return [parseBook(record)]
  } catch (fault) {
    if (fault instanceof Fault) return []
    throw fault
  }
}

export function createCatalogue(
  requests: Requests,
  { onSkipped, addBuilderFee }: { onSkipped: OnSkipped; addBuilderFee: AddBuilderFee },
): Catalogue {
  const { read, readOptional } = requests
  const market = createMarketLookup(requests, onSkipped)

  async function search(filter: MarketFilter & { text: string }, { page, size }: SearchPlace) {
    const query = {
      q: filter.text,
      limit_per_type: String(size),
      page: String(page),
      events_status: filter.isClosed === undefined ? undefined : filter.isClosed ? 'resolved' : 'active',
      events_tag: filter.tag,
    }
    const found = await read(gamma('/public-search', query), SearchPage)
    const events = parseEvents((found.events ?? []).slice(0, size), onSkipped)
    const next = found.pagination?.hasMore === true ? cursorOf({ page: page + 1, size, skip: 0 }) : null
    return { events, next }
  }

  async function events(filter: MarketFilter): Promise<Paged<PredictionEvent>> {
    const { text, limit } = filter
    if (text !== undefined) {
      const found = await search({ ...filter, text }, placeOf(filter))
      return { items: found.events, nextCursor: found.next }
    }
    const page = await read(gamma('/events/keyset', listQuery(filter)), EventPage)
    return {
      items: parseEvents(page.events.slice(0, limit), onSkipped),
      nextCursor: page.next_cursor || null,
    }
  }

  /** The markets of the found events, at most so many; the next page begins with those that were cut off. */
  async function searchMarkets(filter: MarketFilter & { text: string }): Promise<Paged<PredictionMarket>> {
    const place = placeOf(filter)
    const { events, next } = await search(filter, place)
    const markets = events.flatMap((event) => event.markets).filter(isListable)
    const end = place.skip + filter.limit
    return {
      items: markets.slice(place.skip, end),
      nextCursor: end < markets.length ? cursorOf({ ...place, skip: end }) : next,
    }
  }

  const book: Catalogue['book'] = async (outcomeId) => {
    const call: Call = { service: 'clob', path: '/book', query: { token_id: outcomeId } }
    const reply = parseBook(await read(call, WireBook))
    if (reply.outcomeId !== outcomeId)
      throw new Fault('upstream_changed', 'Polymarket sent the book of another outcome')
    return reply
  }

  const chargedFee = async (listed: PredictionMarket) => {
    const path = `/clob-markets/${encodeURIComponent(listed.marketId)}`
    return addBuilderFee(feeOfTraded(await read({ service: 'clob', path }, ClobMarket), listed))
  }

  const books: Catalogue['books'] = async (outcomeIds) => {
    const body = JSON.stringify(outcomeIds.map((token_id) => ({ token_id })))
    const records = await read({ service: 'clob', method: 'POST', path: '/books', body }, BookList)
    return new Map(records.flatMap(knownBook).map((each) => [each.outcomeId, each]))
  }

  return {
    events,
    book,
    books,
    market,
    marketsById: createMarketsById(requests, onSkipped),
    async markets(filter) {
      const { text, limit } = filter
      if (text !== undefined) return searchMarkets({ ...filter, text })
      const page = await read(gamma('/markets/keyset', listQuery(filter)), MarketPage)
      const markets = parseMarkets(page.markets.slice(0, limit), onSkipped)
      return { items: markets.filter(isListable), nextCursor: page.next_cursor || null }
    },
    async event(idOrSlug) {
      const isId = /^\d{1,18}$/.test(idOrSlug)
      const path = isId ? `/events/${idOrSlug}` : `/events/slug/${encodeURIComponent(idOrSlug)}`
      const record = await readOptional(gamma(path), EventRecord)
      if (record === undefined) return undefined
      const [found] = parseEvents([record], onSkipped)
      if (found) return { ...found, markets: found.markets.filter(isListable) }
      throw unreadable('event')
    },
    async prices(outcomeId, window, stepMinutes) {
      const query = { market: outcomeId, interval: window, fidelity: String(stepMinutes) }
      const { history } = await read({ service: 'clob', path: '/prices-history', query }, PriceHistory)
      // The newest prices stay where the venue sends more than was asked for.
      return history.slice(-pricePointsMax).flatMap(({ t, p }) => {
        const [at, priceMicros] = [dateOf(t), priceOf(p)]
        return at === null || priceMicros === undefined ? [] : { at, priceMicros }
      })
    },
    async quote({ outcomeId, spend, worstPriceMicros }) {
      const readFee = async () => {
        const known = await market({ outcomeId })
        if (!known) throw new Fault('not_found', 'Polymarket lists no market with this outcome')
        return chargedFee(known)
      }
      const [fee, current] = await Promise.all([readFee(), book(outcomeId)])
      return quoteBook({ ...current, venue: venueName }, fee, spend, worstPriceMicros)
    },
    highestFee: async (known, order) => highestOrderFee(await chargedFee(known), order, known.tickMicros),
  }
}
