import { plain } from '#world/venue-core/http.ts'
import { type CatalogEvent, catalog } from './catalog.ts'
import { eventView, marketView, tagView } from './gamma-views.ts'
import {
  booleanOf,
  HttpError,
  integerOf,
  listOf,
  ok,
  type Reply,
  type Request,
  type Route,
  route,
} from './http.ts'
import { events, type Market, markets, marketsOf } from './markets.ts'
import type { RealismControl } from './realism.ts'
import { stateOf, type Venue } from './venue.ts'

const pageMax = 100
const listMax = 500
const pageDefault = 20

const tags = [...new Map(catalog.flatMap((event) => event.tags).map((tag) => [tag.id, tag])).values()].sort(
  (a, b) => Number(a.id) - Number(b.id),
)

const isClosedEvent = (venue: Venue, event: CatalogEvent): boolean =>
  marketsOf(event).every(({ conditionId }) => stateOf(venue, conditionId).isClosed)

const within = (wanted: readonly string[], value: string): boolean =>
  wanted.length === 0 || wanted.includes(value)

const includesIgnoringCase = (text: string, part: string): boolean =>
  text.toLowerCase().includes(part.toLowerCase())

const hasTag = (event: CatalogEvent, { query }: Request): boolean => {
  const [ids, slug, excluded] = [
    listOf(query, 'tag_id'),
    query.get('tag_slug'),
    listOf(query, 'exclude_tag_id'),
  ]
  return (
    (ids.length === 0 || event.tags.some(({ id }) => ids.includes(id))) &&
    (!slug || event.tags.some((tag) => tag.slug === slug)) &&
    !event.tags.some(({ id }) => excluded.includes(id))
  )
}

const volumeOf = (venue: Venue, list: readonly Market[]): number =>
  list.reduce((sum, { conditionId }) => sum + Number(stateOf(venue, conditionId).volume), 0)

/** Sorts by volume, or by id for every other key: all that differs between these markets. */
const ordered = <T extends { id: string }>(
  list: readonly T[],
  { query }: Request,
  volume: (each: T) => number,
): T[] => {
  const isAscending = query.get('ascending') === 'true'
  const key = /volume/i.test(query.get('order') ?? '') ? volume : ({ id }: T) => Number(id)
  const sorted = [...list].sort((a, b) => key(a) - key(b) || Number(a.id) - Number(b.id))
  return isAscending || query.get('order') === null ? sorted : sorted.reverse()
}

const filterEvents = (venue: Venue, request: Request): CatalogEvent[] => {
  const { query } = request
  const [closed, title] = [booleanOf(query, 'closed'), query.get('title_search')]
  const isPast = booleanOf(query, 'active') === false || booleanOf(query, 'archived') === true
  if (isPast && closed !== true) return []
  const list = events.filter(
    (event) =>
      within(listOf(query, 'id'), event.id) &&
      within(listOf(query, 'slug'), event.slug) &&
      hasTag(event, request) &&
      (closed === undefined || isClosedEvent(venue, event) === closed) &&
      (!title || includesIgnoringCase(event.title, title)),
  )
  return ordered(list, request, (event) => volumeOf(venue, marketsOf(event)))
}

const filterMarkets = (venue: Venue, request: Request): Market[] => {
  const { query } = request
  const tokens = listOf(query, 'clob_token_ids')
  if (tokens.some((token) => !/^[0-9]+$/.test(token))) throw new HttpError(422, 'invalid clob token ids')
  const positions = listOf(query, 'position_ids')
  const conditions = listOf(query, 'condition_ids').map((id) => id.toLowerCase())
  const questions = listOf(query, 'question_ids').map((id) => id.toLowerCase())
  const isByKey = tokens.length + conditions.length + positions.length + listOf(query, 'id').length > 0
  const closed = booleanOf(query, 'closed')
  const list = markets.filter(
    (market) =>
      within(listOf(query, 'id'), market.id) &&
      within(listOf(query, 'slug'), market.slug) &&
      within(conditions, market.conditionId.toLowerCase()) &&
      within(questions, market.chain.questionId.toLowerCase()) &&
      (tokens.length === 0 || market.tokens.some((token) => tokens.includes(token))) &&
      (positions.length === 0 ||
        (market.chain.protocol === 'v2' && market.tokens.some((token) => positions.includes(token)))) &&
      hasTag(market.event, request) &&
      // Without a key and a filter, closed markets are left out.
      (closed === undefined
        ? isByKey || !stateOf(venue, market.conditionId).isClosed
        : stateOf(venue, market.conditionId).isClosed === closed),
  )
  return ordered(list, request, (market) => volumeOf(venue, [market]))
}

const cursorOf = (offset: number): string => Buffer.from(`after:${offset}`).toString('base64url')

const offsetOf = (cursor: string | null): number => {
  if (cursor === null || cursor === '') return 0
  const offset = Number(/^after:([0-9]+)$/.exec(Buffer.from(cursor, 'base64url').toString())?.[1])
  if (!Number.isInteger(offset)) throw new HttpError(400, 'invalid after_cursor')
  return offset
}

/** The cursor is absent on the last page. */
const keyset = <T>(list: readonly T[], { query }: Request, view: (each: T) => unknown) => {
  const limit = integerOf(query, 'limit', { fallback: pageDefault, min: 1, max: pageMax })
  const from = offsetOf(query.get('after_cursor'))
  const next = from + limit
  return {
    rows: list.slice(from, next).map(view),
    more: next < list.length ? { next_cursor: cursorOf(next) } : {},
  }
}

const listed = <T>(list: readonly T[], { query }: Request, view: (each: T) => unknown) => {
  const limit = integerOf(query, 'limit', { fallback: pageDefault, max: listMax })
  const from = integerOf(query, 'offset', { fallback: 0, max: 100_000 })
  return list.slice(from, from + limit).map(view)
}

const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)

/** Every word has to occur in the event or in one of its markets. */
const matches = (event: CatalogEvent, text: string): boolean => {
  const content = [
    event.title,
    ...event.tags.map(({ label }) => label),
    ...event.markets.map(({ question }) => question),
  ]
    .join(' ')
    .toLowerCase()
  return wordsOf(text).every((word) => content.includes(word))
}

const search = (venue: Venue, { query }: Request) => {
  const text = query.get('q') ?? ''
  if (text.trim() === '') throw new HttpError(422, 'q is required')
  const status = query.get('events_status')
  const found = events.filter(
    (event) =>
      matches(event, text) &&
      (status === null ||
        status === '' ||
        (status === 'active' ? !isClosedEvent(venue, event) : isClosedEvent(venue, event))),
  )
  const size = integerOf(query, 'limit_per_type', { fallback: 10, min: 1, max: pageMax })
  const from = (integerOf(query, 'page', { fallback: 1, min: 1, max: 10_000 }) - 1) * size
  const foundTags = tags.filter(({ label }) => includesIgnoringCase(label, text))
  return {
    events: found.slice(from, from + size).map((event) => eventView(venue, event)),
    tags: foundTags.map(({ id, label, slug }) => ({ id, label, slug, event_count: 1 })),
    profiles: [],
    pagination: { hasMore: from + size < found.length, totalResults: found.length },
  }
}

const requireFound = <T>(value: T | undefined): T => {
  if (value === undefined) throw new HttpError(404, 'not found', { type: 'not found error' })
  return value
}

export const gammaRoutes = (venue: Venue): Route[] => {
  const { genesisMs } = venue.state
  const event = (each: CatalogEvent) => eventView(venue, each)
  const market = (each: Market) => marketView(venue, each)
  type Key = 'id' | 'slug'
  const by = <T extends Record<Key, string>>(list: readonly T[], key: Key, value: string | undefined) =>
    requireFound(list.find((each) => each[key] === value))
  const tagList = (list: typeof tags) => list.map((each) => tagView(each, genesisMs))
  return [
    route('GET /status', () => ({ status: 200, body: 'OK', headers: plain })),
    route('GET /events', (request) => ok(listed(filterEvents(venue, request), request, event))),
    route('GET /events/keyset', (request) => {
      const { rows, more } = keyset(filterEvents(venue, request), request, event)
      return ok({ events: rows, ...more })
    }),
    route('GET /events/slug/:slug', (_request, [slug]) => ok(event(by(events, 'slug', slug)))),
    route('GET /events/:id', (_request, [id]) => ok(event(by(events, 'id', id)))),
    route('GET /events/:id/tags', (_request, [id]) => ok(tagList([...by(events, 'id', id).tags]))),
    route('GET /markets', (request) => ok(listed(filterMarkets(venue, request), request, market))),
    route('GET /markets/keyset', (request) => {
      const { rows, more } = keyset(filterMarkets(venue, request), request, market)
      return ok({ markets: rows, ...more })
    }),
    route('GET /markets/slug/:slug', (_request, [slug]) => ok(market(by(markets, 'slug', slug)))),
    route('GET /markets/:id', (_request, [id]) => ok(market(by(markets, 'id', id)))),
    route('GET /markets/:id/tags', (_request, [id]) => ok(tagList([...by(markets, 'id', id).event.tags]))),
    route('GET /public-search', (request) => ok(search(venue, request))),
    route('GET /tags', (request) => ok(listed(tags, request, (each) => tagView(each, genesisMs)))),
    route('GET /tags/slug/:slug', (_request, [slug]) => ok(tagView(by(tags, 'slug', slug), genesisMs))),
    route('GET /tags/:id', (_request, [id]) => ok(tagView(by(tags, 'id', id), genesisMs))),
  ]
}

/** Markets in lists, events and searches alike; their ids stay those of their own protocol. */
export const contradictVersions = (routes: readonly Route[], realism: RealismControl): Route[] =>
  routes.map((each) => ({
    ...each,
    handle: async (request, parameters) => {
      const reply = await each.handle(request, parameters)
      const { versionContradictionRate: rate } = realism.current()
      if (rate === 0) return reply
      const revive = (key: string, value: unknown) =>
        key === 'version' && realism.isHit('versionContradictionRate', rate)
          ? { v1: 'v2', v2: 'v1' }[String(value)]
          : value
      return { ...reply, body: JSON.parse(JSON.stringify(reply.body), revive) }
    },
  }))

/** Answers of up to a lag ago, as from a cache before the service. */
export const cachedRoutes = (routes: readonly Route[], lagMs: () => number): Route[] => {
  const cached = new Map<string, { atMs: number; reply: Reply }>()
  return routes.map((each) => ({
    ...each,
    handle: async (request, parameters) => {
      const key = `${request.path}?${request.query}`
      const stored = cached.get(key)
      if (stored && Date.now() - stored.atMs < lagMs()) return stored.reply
      const reply = await each.handle(request, parameters)
      if (cached.size >= 1_000) cached.clear()
      cached.set(key, { atMs: Date.now(), reply })
      return reply
    },
  }))
}
