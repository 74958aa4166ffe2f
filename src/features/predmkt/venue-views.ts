import { createTtlCache, type TtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import type {
  MarketFilter,
  Paged,
  PredictionEvent,
  PredictionVenue,
  PricePoint,
  PriceWindow,
  VenuePosition,
} from '#kernel/money/prediction-venue.ts'
import type { Book, PredictionMarket } from '#kernel/money/prediction-views.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import { createReadBudget, type ReadBudget, type Service } from './read-budget.ts'
import { readPages } from './read-pages.ts'

/**
 * What people are shown of the venue: read for several of them by one request, kept for seconds, and bounded per user.
 * Admissions and signatures read the venue itself instead.
 */

const bookMs = 1_000
const marketMs = 2_000
/** The payout of a resolved market stays. */
const payoutMs = 300_000
const listMs = 3_000
const positionsMs = 2_000
const pricesMs = 5_000
/** The bounds of the caches: levels, markets, characters, rows and points, each some megabytes. */
const levelsMax = 100_000
const marketsMax = 5_000
const charactersMax = 4_000_000
const rowsMax = 20_000
const pointsInCacheMax = 100_000
/** A history of so many prices costs as much as a request. */
const pointsPerRequest = 1_000
/** The characters of a market besides those of its words. */
const marketCharacters = 1_000
export const batchMax = 50
/** So many batches one read asks for, whose markets cost the whole share of a user. */
const batchesMax = 20
/** The venue's list of positions is read up to so many pages. */
const pagesMax = 4

export type MarketFacts = Pick<PredictionMarket, 'isNegRisk' | 'payoutMicros' | 'endsAt'> & {
  outcomeIds: string[]
}
type ListedPosition = Pick<VenuePosition, 'outcomeId' | 'marketId' | 'outcome' | 'title'>
type ViewedVenue = Pick<
  PredictionVenue,
  'markets' | 'marketsById' | 'event' | 'book' | 'books' | 'prices' | 'positions'
>
export type VenueViews = ReturnType<typeof createVenueViews>

const charactersOf = (markets: readonly PredictionMarket[]): number =>
  markets.reduce(
    (sum, { description, question, slug }) =>
      sum + marketCharacters + description.length + question.length + slug.length,
    marketCharacters,
  )

const createBookCache = (nowMs: () => number) =>
  createTtlCache<Book | null>({
    ttlMs: bookMs,
    entriesMax: levelsMax,
    sizeOf: (book) => 1 + (book ? book.bids.length + book.asks.length : 0),
    nowMs,
  })

function createMarketCaches(nowMs: () => number) {
  const current = createTtlCache<MarketFacts | null>({ ttlMs: marketMs, entriesMax: marketsMax, nowMs })
  const resolved = createTtlCache<MarketFacts>({ ttlMs: payoutMs, entriesMax: marketsMax, nowMs })
  return { current, resolved }
}

const createListCaches = (nowMs: () => number) => ({
  pages: createTtlCache<Paged<PredictionMarket>>({
    ttlMs: listMs,
    entriesMax: charactersMax,
    sizeOf: ({ items }) => charactersOf(items),
    nowMs,
  }),
  events: createTtlCache<PredictionEvent | undefined>({
    ttlMs: listMs,
    entriesMax: charactersMax,
    sizeOf: (event) => charactersOf(event?.markets ?? []) + (event?.description.length ?? 0),
    nowMs,
  }),
  prices: createTtlCache<PricePoint[]>({
    ttlMs: pricesMs,
    entriesMax: pointsInCacheMax,
    sizeOf: (points) => 1 + points.length,
    nowMs,
  }),
  positions: createTtlCache<ListedPosition[]>({
    ttlMs: positionsMs,
    entriesMax: rowsMax,
    sizeOf: (rows) => 1 + rows.length,
    nowMs,
  }),
})

/** Loads through caches; who starts a load pays for it, and those who join it do not. */
function createLoads(budget: ReadBudget) {
  async function once<V>(
    cache: TtlCache<V>,
    key: string,
    { userId, service, load }: { userId: string; service: Service; load: () => Promise<V> },
  ): Promise<V> {
    if (isMissing(cache, key)) budget.take(userId, service)
    return cache.get(key, () => budget.send(service, load))
  }

  /** Loads the keys that are missing in batches, and waits for all. Those beyond the bound of a read are left out. */
  async function many<V>(
    cache: TtlCache<V | null>,
    keys: readonly string[],
    batch: { take: (batches: number) => void; load(keys: string[]): Promise<ReadonlyMap<string, V>> },
  ): Promise<Map<string, V>> {
    const wanted = [...new Set(keys)]
    const allMissing = wanted.filter((key) => isMissing(cache, key))
    const missing = allMissing.slice(0, batchesMax * batchMax)
    const left = new Set(allMissing.slice(missing.length))
    const asked = wanted.filter((key) => !left.has(key))
    const count = Math.ceil(missing.length / batchMax)
    if (count > 0) batch.take(count)
    const loads = new Map<string, Promise<ReadonlyMap<string, V>>>()
    for (let at = 0; at < count; at += 1) {
      const some = missing.slice(at * batchMax, (at + 1) * batchMax)
      const load = batch.load(some)
      for (const key of some) loads.set(key, load)
    }
    const loadOf = async (key: string) =>
      ((await loads.get(key)) ?? (await batch.load([key]))).get(key) ?? null
    const values = await Promise.all(asked.map((key) => cache.get(key, () => loadOf(key))))
    return new Map(
      asked.flatMap((key, index) => (values[index] == null ? [] : ([[key, values[index]]] as const))),
    )
  }
  return { once, many }
}

export function createVenueViews(
  venue: ViewedVenue,
  nowMs: () => number = monotonicMs,
  budget: ReadBudget = createReadBudget(nowMs),
) {
  const { once, many } = createLoads(budget)
  const books = createBookCache(nowMs)
  const markets = createMarketCaches(nowMs)
  const { pages, events, prices, positions } = createListCaches(nowMs)

  /** Counts the requests by which a refused list is halved; the first one was taken from the budget before. */
  function countedBooks(userId: string): Pick<PredictionVenue, 'books' | 'book'> {
    let isFirst = true
    const count = () => {
      if (!isFirst) budget.add(userId, 'books')
      isFirst = false
    }
    return {
      books(ids) {
        count()
        return venue.books(ids)
      },
      book(id) {
        count()
        return venue.book(id)
      },
    }
  }

  async function loadFacts(ids: readonly string[]): Promise<ReadonlyMap<string, MarketFacts>> {
    const found = await budget.send('catalogue', () => venue.marketsById(ids))
    const facts = new Map([...found].map(([id, market]) => [id, factsOf(market)]))
    for (const [id, each] of facts)
      if (each.payoutMicros !== null) await markets.resolved.get(id, async () => each)
    return facts
  }

  return {
    markets: (userId: string, filter: MarketFilter) =>
      once(pages, canonicalJson(filter), {
        userId,
        service: 'catalogue',
        load: () => venue.markets(filter),
      }),
    event: (userId: string, idOrSlug: string) =>
      once(events, idOrSlug, { userId, service: 'catalogue', load: () => venue.event(idOrSlug) }),
    async book(userId: string, outcomeId: string): Promise<Book> {
      const load = () => venue.book(outcomeId)
      const book = await once(books, outcomeId, { userId, service: 'books', load })
      if (book) return book
      throw notFound('outcome', 'predmkt_markets')
    },
    prices: (userId: string, outcomeId: string, window: PriceWindow, stepMinutes: number) =>
      once(prices, `${outcomeId}:${window}:${stepMinutes}`, {
        userId,
        service: 'books',
        async load() {
          const points = await venue.prices(outcomeId, window, stepMinutes)
          const further = Math.floor(points.length / pointsPerRequest)
          if (further > 0) budget.add(userId, 'books', further)
          return points
        },
      }),
    /** A quote is read anew, because an order may name it: its market twice, its fee and its book. */
    takeQuote(userId: string): void {
      budget.take(userId, 'catalogue', 2)
      budget.take(userId, 'books', 2)
    },
    takeAdmission: (userId: string): void => budget.take(userId, 'admission'),
    takeRedemption: (userId: string, requests = 1): void => budget.take(userId, 'redemption', requests),
    books: (userId: string, outcomeIds: readonly string[]) =>
      many(books, outcomeIds, {
        take: (batches) => budget.take(userId, 'books', batches),
        load: (ids) => budget.send('books', () => loadBooks(countedBooks(userId), ids)),
      }),
    /** A market that has closed costs a second request. */
    async marketFacts(userId: string, marketIds: readonly string[]): Promise<Map<string, MarketFacts>> {
      const known = new Map(
        marketIds.flatMap((id) => {
          const facts = markets.resolved.peek(id)
          return facts ? [[id, facts] as const] : []
        }),
      )
      const open = marketIds.filter((id) => !known.has(id))
      const found = await many(markets.current, open, {
        take: (batches) => budget.take(userId, 'catalogue', 2 * batches),
        load: loadFacts,
      })
      return new Map([...known, ...found])
    },
    positions: (userId: string, wallet: string): Promise<ListedPosition[]> =>
      positions.get(wallet, async () => {
        const listed = await listPositions((cursor) => {
          budget.take(userId, 'record')
          return budget.send('record', () => venue.positions(wallet, cursor))
        })
        return listed.map(({ outcomeId, marketId, outcome, title }) => ({
          outcomeId,
          marketId,
          outcome,
          title,
        }))
      }),
  }
}

const isMissing = <V>(cache: TtlCache<V>, key: string): boolean =>
  cache.peek(key) === undefined && cache.loading(key) === undefined

const factsOf = ({ isNegRisk, payoutMicros, endsAt, outcomes }: PredictionMarket): MarketFacts => ({
  isNegRisk,
  payoutMicros,
  endsAt,
  outcomeIds: outcomes.map(({ outcomeId }) => outcomeId),
})

/** What the venue does not answer is left out; what the gateway refuses the reader is not. */
export function ignoreVenueFault(error: unknown): undefined {
  if (error instanceof Fault && error.code !== 'rate_limited') return undefined
  throw error
}

/** The positions that the venue's public record lists, as far as it answers. */
export async function listPositions(
  read: (cursor: string | undefined) => ReturnType<PredictionVenue['positions']>,
): Promise<VenuePosition[]> {
  const { items } = await readPages((cursor) => attempt(() => read(cursor)), pagesMax)
  return items
}

async function attempt<T>(run: () => Promise<T>): Promise<T | undefined> {
  try {
    return await run()
  } catch (error) {
    return ignoreVenueFault(error)
  }
}

/** One outcome that the venue refuses must not hide the books of the others: a refused list is halved. */
export async function loadBooks(
  venue: Pick<PredictionVenue, 'books' | 'book'>,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Book>> {
  const ignoreRefusal = (fault: unknown): undefined => {
    if (fault instanceof Fault && !fault.retryable) return undefined
    throw fault
  }
  const all = await venue.books(ids).catch(ignoreRefusal)
  if (all) return all
  const [first] = ids
  if (first !== undefined && ids.length === 1) {
    const book = await venue.book(first).catch(ignoreRefusal)
    return new Map(book ? [[first, book]] : [])
  }
  const middle = ids.length >> 1
  const halves = await Promise.all([
    loadBooks(venue, ids.slice(0, middle)),
    loadBooks(venue, ids.slice(middle)),
  ])
  return new Map(halves.flatMap((half) => [...half]))
}
