import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { NetRequest } from '#kernel/wire/upstream-http.ts'
import { createCatalogue } from './catalogue.ts'
import { createRequests } from './requests.ts'

const url = 'https://venue.test'
const urls = { clob: url, gamma: url, data: url, relayer: url, bridge: url, geoblock: url }

const idOf = (number: number): string => `0x${number.toString(16).padStart(64, '0')}`
const marketOf = (number: number, change: object = {}) => ({
  id: String(number),
  conditionId: idOf(number),
  slug: `market-${number}`,
  question: `Market ${number}?`,
  outcomes: '["Yes", "No"]',
  outcomePrices: '["0.5", "0.5"]',
  clobTokenIds: JSON.stringify([String(10_000 + 2 * number), String(10_001 + 2 * number)]),
  acceptingOrders: true,
  orderPriceMinTickSize: 0.01,
  ...change,
})

/** The catalogue on a venue that answers each request by its address. */
function catalogueOn(answer: (asked: URL) => unknown) {
  const sent: URL[] = []
  const fetch = async (request: NetRequest) => {
    const asked = new URL(request.url)
    sent.push(asked)
    return { status: 200, body: JSON.stringify(answer(asked)) }
  }
  const requests = createRequests({ urls, net: { fetch } })
  const catalogue = createCatalogue(requests, { onSkipped: () => {}, addBuilderFee: async (fee) => fee })
  return { sent, catalogue }
}

test('many markets are read by few requests, and closed ones by a second one', async () => {
  const isClosed = (number: number) => number % 2 === 1
  const { sent, catalogue } = catalogueOn(({ searchParams }) =>
    searchParams
      .getAll('condition_ids')
      .map((id) => Number.parseInt(id, 16))
      .filter((number) => number !== 7 && isClosed(number) === (searchParams.get('closed') === 'true'))
      .map((number) => marketOf(number)),
  )
  const asked = Array.from({ length: 120 }, (_, index) => idOf(index + 1))
  const found = await catalogue.marketsById(asked)
  assert.deepEqual(
    [...found.keys()],
    asked.filter((id) => id !== idOf(7)),
  )
  assert.deepEqual(
    sent.map(({ searchParams }) => [
      searchParams.getAll('condition_ids').length,
      searchParams.get('limit'),
      searchParams.get('closed'),
    ]),
    [
      [50, '50', null],
      [25, '25', 'true'],
      [50, '50', null],
      [25, '25', 'true'],
      [20, '20', null],
      [10, '10', 'true'],
    ],
  )
})

test('a search lists no more markets than asked for, and goes on where it was cut', async () => {
  const events = [3, 1, 2].map((count, index) => ({
    id: index,
    slug: `event-${index}`,
    title: `Event ${index}`,
    markets: Array.from({ length: count }, (_, number) => marketOf(10 * index + number + 1)),
  }))
  const { sent, catalogue } = catalogueOn(({ searchParams }) => {
    const [page, size] = [Number(searchParams.get('page')), Number(searchParams.get('limit_per_type'))]
    const from = (page - 1) * size
    return { events: events.slice(from, from + size), pagination: { hasMore: from + size < events.length } }
  })
  const found: string[][] = []
  let cursor: string | undefined
  do {
    const page = await catalogue.markets({ text: 'event', limit: 2, ...(cursor && { cursor }) })
    found.push(page.items.map(({ slug }) => slug))
    cursor = page.nextCursor ?? undefined
  } while (cursor)
  assert.deepEqual(found, [
    ['market-1', 'market-2'],
    ['market-3', 'market-11'],
    ['market-21', 'market-22'],
  ])
  assert.ok(sent.every(({ searchParams }) => searchParams.get('limit_per_type') === '2'))
  for (const wrong of ['1', '0.2.0', '1.999.0', 'x', '1.2.3.4'])
    await assert.rejects(catalogue.markets({ text: 'event', limit: 2, cursor: wrong }), /cursor/)
})

test('a list that is longer than asked for is cut', async () => {
  const { catalogue } = catalogueOn(() => ({
    markets: Array.from({ length: 50 }, (_, index) => marketOf(index + 1)),
  }))
  assert.equal((await catalogue.markets({ limit: 3 })).items.length, 3)
})

test('a market that cannot be read is in no list, and is refused by name when it is asked for alone', async () => {
  const { catalogue } = catalogueOn(({ pathname }) => {
    const bad = marketOf(1, { clobTokenIds: '["x", "y"]' })
    if (pathname === '/markets') return [bad]
    return { markets: [bad, marketOf(2, { orderPriceMinTickSize: -4 }), marketOf(3)] }
  })
  const { items } = await catalogue.markets({ limit: 10 })
  assert.deepEqual(
    items.map(({ slug }) => slug),
    ['market-3'],
  )
  await assert.rejects(
    catalogue.market({ marketId: idOf(1) }),
    (error) => error instanceof Fault && error.code === 'upstream_changed',
  )
  assert.equal((await catalogue.marketsById([idOf(1)])).size, 0)
})

test('points of a price history that are none are left out', async () => {
  const { catalogue } = catalogueOn(() => ({
    history: [
      { t: 1_700_000_000, p: 0.5 },
      { t: Number.MAX_SAFE_INTEGER, p: 0.5 },
      { t: -9e15, p: 0.5 },
      { t: 1_700_000_001, p: 7 },
    ],
  }))
  const points = await catalogue.prices('1', '1d', 10)
  assert.deepEqual(points[0], { at: new Date(1_700_000_000_000), priceMicros: 500_000n })
  assert.ok(points.every(({ at }) => at.toISOString().length === 24))
  assert.ok(points.every(({ priceMicros }) => priceMicros === 500_000n))
})

test('of a price history beyond its bound the newest prices stay', async () => {
  const history = Array.from({ length: 25_000 }, (_, at) => ({ t: 1_700_000_000 + at, p: 0.5 }))
  const { catalogue } = catalogueOn(() => ({ history }))
  const points = await catalogue.prices('1', 'max', 60)
  assert.deepEqual([points.length, points.at(-1)?.at], [10_000, new Date(1_700_024_999_000)])
})
