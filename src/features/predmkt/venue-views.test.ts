import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { PredictionVenue } from '#kernel/money/prediction-venue.ts'
import type { Book, PredictionMarket } from '#kernel/money/prediction-views.ts'
import { createVenueViews, loadBooks } from './venue-views.ts'

const bookOf = (outcomeId: string): Book => ({
  venue: 'polymarket',
  marketId: '0x1',
  outcomeId,
  bids: [{ priceMicros: 400_000n, sizeUnits: 1n }],
  asks: [],
  tickMicros: 10_000n,
  minSizeUnits: 1n,
  isNegRisk: false,
  lastPriceMicros: null,
  hash: '',
  at: new Date(0),
})
const marketOf = (marketId: string): PredictionMarket => ({
  venue: 'polymarket',
  marketId,
  protocol: 'v1',
  isNegRisk: false,
  slug: marketId,
  question: '',
  description: '',
  category: null,
  image: null,
  eventId: null,
  eventSlug: null,
  eventTitle: null,
  outcomes: [{ outcomeId: `${marketId}-yes`, label: 'Yes', priceMicros: null }],
  tickMicros: 10_000n,
  minSizeUnits: 0n,
  acceptsOrders: true,
  isClosed: false,
  matchDelaySeconds: 0,
  fee: null,
  bestBidMicros: null,
  bestAskMicros: null,
  lastPriceMicros: null,
  volumeUnits: 0n,
  volume24hUnits: 0n,
  liquidityUnits: 0n,
  endsAt: null,
  payoutMicros: marketId.startsWith('resolved') ? [1_000_000n] : null,
})

/** Views of a venue that counts what it is asked, on a clock that stands still. */
function viewsFixture(change: Partial<PredictionVenue> = {}) {
  const asked: unknown[][] = []
  const clock = { ms: 1_000_000 }
  const views = createVenueViews(
    {
      async markets(filter) {
        asked.push(['markets', filter.text])
        return { items: [], nextCursor: null }
      },
      async marketsById(ids) {
        asked.push(['marketsById', ids.length])
        return new Map(ids.map((id) => [id, marketOf(id)]))
      },
      async event(id) {
        asked.push(['event', id])
        return undefined
      },
      async book(outcomeId) {
        asked.push(['book', outcomeId])
        return bookOf(outcomeId)
      },
      async books(ids) {
        asked.push(['books', ids.length])
        return new Map(ids.map((id) => [id, bookOf(id)]))
      },
      async prices(outcomeId) {
        asked.push(['prices', outcomeId])
        return []
      },
      async positions(wallet) {
        asked.push(['positions', wallet])
        return { items: [], nextCursor: null }
      },
      ...change,
    },
    () => clock.ms,
  )
  return { asked, clock, views }
}
const names = (count: number, prefix = 'id') =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
const isLimited = (owner: string) => (error: unknown) =>
  error instanceof Fault &&
  error.code === 'rate_limited' &&
  error.extras.owner === owner &&
  Number(error.extras.retry_after) > 0

test('markets and books of many positions are read in batches, together with those of others', async () => {
  const { asked, clock, views } = viewsFixture()
  const ids = names(120)
  const [one, two] = await Promise.all([
    views.marketFacts('ada', ids),
    views.marketFacts('bob', ids),
    views.books('ada', [...ids, ...ids]),
    views.books('bob', ids.slice(0, 60)),
  ])
  assert.deepEqual([one.size, two.size], [120, 120])
  assert.deepEqual(asked, [
    ['marketsById', 50],
    ['marketsById', 50],
    ['marketsById', 20],
    ['books', 50],
    ['books', 50],
    ['books', 20],
  ])
  await views.books('ada', ids)
  await views.book('ada', 'id-3')
  assert.equal(asked.length, 6)
  clock.ms += 1_000
  await views.book('ada', 'id-3')
  assert.deepEqual(asked.slice(6), [['book', 'id-3']])
})

test('the payout of a resolved market is read once, and an open market again after seconds', async () => {
  const { asked, clock, views } = viewsFixture()
  await views.marketFacts('ada', ['resolved-1', 'open-1'])
  clock.ms += 10_000
  const found = await views.marketFacts('ada', ['resolved-1', 'open-1'])
  assert.deepEqual(found.get('resolved-1')?.payoutMicros, [1_000_000n])
  assert.deepEqual(asked, [
    ['marketsById', 2],
    ['marketsById', 1],
  ])
})

test('a reader beyond the own share is refused, and others go on', async () => {
  const { asked, clock, views } = viewsFixture()
  for (const text of names(40)) await views.markets('ada', { text, limit: 5 })
  await assert.rejects(views.markets('ada', { text: 'more', limit: 5 }), isLimited('user'))
  await views.markets('ada', { text: 'id-3', limit: 5 })
  await views.markets('bob', { text: 'more', limit: 5 })
  assert.equal(asked.length, 41)
  clock.ms += 10_100
  await views.markets('ada', { text: 'again', limit: 5 })
})

test('all readers together leave the rest of the venue to orders, cancels and exits', async () => {
  const { asked, views } = viewsFixture()
  const read = async (user: string) => {
    for (const wallet of names(20, user)) await views.positions(user, wallet)
  }
  for (const user of names(60, 'user'))
    await read(user).catch((error) => assert.ok(isLimited('instance')(error) || isLimited('user')(error)))
  assert.equal(asked.length, 75)
  await assert.rejects(read('dan'), isLimited('instance'))
  // A redemption is bounded by the share of its own user alone.
  for (let count = 0; count < 30; count += 1) views.takeRedemption('dan')
  assert.throws(() => views.takeRedemption('dan'), isLimited('user'))
  views.takeRedemption('eve')
})

test('one read asks for a thousand markets at most, and leaves out the others', async () => {
  const { asked, views } = viewsFixture()
  const found = await views.marketFacts('ada', names(2_000))
  assert.deepEqual([found.size, asked.length], [1_000, 20])
  const books = await views.books('ada', names(2_000))
  assert.deepEqual([books.size, asked.length], [1_000, 40])
})

test('a long price history costs its reader as much as its size', async () => {
  const points = Array.from({ length: 10_000 }, () => ({ at: new Date(0), priceMicros: 1n }))
  const { views } = viewsFixture({ prices: async () => points })
  for (const id of names(6)) await views.prices('ada', id, '1w', 2)
  await assert.rejects(views.prices('ada', 'other', '1w', 2), isLimited('user'))
})

test('quotes, which are read anew, count for their user', () => {
  const { views } = viewsFixture()
  for (let count = 0; count < 20; count += 1) views.takeQuote('ada')
  assert.throws(() => views.takeQuote('ada'), isLimited('user'))
  views.takeQuote('bob')
})

test('where the venue refuses a read as one too many, reads of people pause', async () => {
  const refusal = new Fault('unavailable', 'later', { extras: { reason: 'rate_limited', retry_after: 4 } })
  const state = { isRefusing: true }
  const { clock, views } = viewsFixture({
    async prices() {
      if (state.isRefusing) throw refusal
      return []
    },
  })
  await assert.rejects(views.prices('ada', '1', '1d', 10), refusal)
  state.isRefusing = false
  await assert.rejects(views.prices('bob', '2', '1d', 10), isLimited('instance'))
  clock.ms += 4_000
  await views.prices('bob', '2', '1d', 10)
})

test('what the venue does not answer is left out of positions, and a reader over the bound is refused', async () => {
  const { views } = viewsFixture({
    positions: () => Promise.reject(new Fault('unavailable', 'down')),
  })
  for (const wallet of names(20)) assert.deepEqual(await views.positions('ada', wallet), [])
  await assert.rejects(views.positions('ada', 'other'), isLimited('user'))
})

test('one outcome that the venue refuses hides no book of the others, and costs few requests', async () => {
  let requests = 0
  const venue = {
    async books(ids: readonly string[]) {
      requests += 1
      if (ids.includes('id-17')) throw new Fault('upstream_rejected', 'Invalid token id')
      return new Map(ids.map((id) => [id, bookOf(id)]))
    },
    async book(): Promise<Book> {
      requests += 1
      throw new Fault('not_found', 'No orderbook exists')
    },
  }
  const found = await loadBooks(venue, names(50))
  assert.equal(found.size, 49)
  assert.equal(found.has('id-17'), false)
  assert.ok(requests <= 14, String(requests))
})

test('requests by which a refused list is halved count for their reader', async () => {
  const refused = async (): Promise<never> => {
    throw new Fault('upstream_rejected', 'Invalid token id')
  }
  const { views } = viewsFixture({ books: refused, book: refused })
  assert.equal((await views.books('ada', names(50))).size, 0)
  await assert.rejects(views.book('ada', 'other'), isLimited('user'))
  await views.prices('bob', '1', '1d', 10)
})
