import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import type { MarketFilter, Paged, PredictionEvent, PredictionVenue } from '#kernel/money/prediction-venue.ts'
import type { Book, PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { AddBuilderFee } from './builder-fees.ts'
import { unitsOf } from './decimals.ts'
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
  'markets' | 'events' | 'event' | 'market' | 'book' | 'books' | 'prices' | 'quote' | 'highestFee'
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

/** Cursors of searches are numbers of pages. */
const pageOf = (cursor: string | undefined): number => {
  if (cursor === undefined) return 1
  if (/^\d{1,4}$/.test(cursor)) return Number(cursor)
  throw new Fault('validation', 'The cursor is none of this list', { extras: { reason: 'cursor_invalid' } })
}

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
    // Some keys find closed markets only where they are asked for.
    for (const closed of [undefined, 'true']) {
      const records = await readOptional(gamma('/markets', { ...queryOf(by), closed }), MarketList)
      const found = parseMarkets(records ?? [], onSkipped).find((market) => isWanted(market, by))
      if (found) return found
    }
    return undefined
  }
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

  async function search(filter: MarketFilter & { text: string }): Promise<Paged<PredictionEvent>> {
    const page = pageOf(filter.cursor)
    const query = {
      q: filter.text,
      limit_per_type: String(Math.min(filter.limit, pageMax)),
      page: String(page),
      events_status: filter.isClosed === undefined ? undefined : filter.isClosed ? 'resolved' : 'active',
      events_tag: filter.tag,
    }
    const found = await read(gamma('/public-search', query), SearchPage)
    return {
      items: parseEvents(found.events ?? [], onSkipped),
      nextCursor: found.pagination?.hasMore === true ? String(page + 1) : null,
    }
  }

  async function events(filter: MarketFilter): Promise<Paged<PredictionEvent>> {
    if (filter.text !== undefined) return search({ ...filter, text: filter.text })
    const page = await read(gamma('/events/keyset', listQuery(filter)), EventPage)
    return { items: parseEvents(page.events, onSkipped), nextCursor: page.next_cursor || null }
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
    async markets(filter) {
      if (filter.text !== undefined) {
        const { items, nextCursor } = await events(filter)
        return { items: items.flatMap((event) => event.markets), nextCursor }
      }
      const page = await read(gamma('/markets/keyset', listQuery(filter)), MarketPage)
      return { items: parseMarkets(page.markets, onSkipped), nextCursor: page.next_cursor || null }
    },
    async event(idOrSlug) {
      const isId = /^\d{1,18}$/.test(idOrSlug)
      const path = isId ? `/events/${idOrSlug}` : `/events/slug/${encodeURIComponent(idOrSlug)}`
      const record = await readOptional(gamma(path), EventRecord)
      return record === undefined ? undefined : parseEvents([record], onSkipped)[0]
    },
    async prices(outcomeId, window, stepMinutes) {
      const query = { market: outcomeId, interval: window, fidelity: String(stepMinutes) }
      const { history } = await read({ service: 'clob', path: '/prices-history', query }, PriceHistory)
      return history.flatMap(({ t, p }) => {
        const priceMicros = unitsOf(p)
        return priceMicros === undefined ? [] : { at: new Date(t * 1_000), priceMicros }
      })
    },
    async quote({ outcomeId, spend }) {
      const readFee = async () => {
        const known = await market({ outcomeId })
        if (!known) throw new Fault('not_found', 'Polymarket lists no market with this outcome')
        return chargedFee(known)
      }
      const [fee, current] = await Promise.all([readFee(), book(outcomeId)])
      return quoteBook({ ...current, venue: venueName }, fee, spend)
    },
    highestFee: async (known, order) => highestOrderFee(await chargedFee(known), order, known.tickMicros),
  }
}
