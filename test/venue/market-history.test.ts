import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { historyOf } from '#features/chat/market/candle.ts'
import { systemClock } from '#kernel/clock.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { type Hyperliquid, hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { itemsWeight } from '#upstreams/hyperliquid/rate-budget.ts'
import { type RunningVenue, startVenue } from '../conformance/venue/venue.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

describe('the history of a market', () => {
  let venue: RunningVenue
  let client: Hyperliquid
  const net = createHttpClient({ failpoints: noFailpoints })
  before(async () => {
    venue = await startVenue()
    client = hyperliquid({ url: venue.url, net, clock: systemClock })
  })
  after(async () => {
    await net[Symbol.asyncDispose]()
    await venue?.close()
  })

  /** As any client of the venue asks. */
  async function ask<A>(body: object): Promise<A> {
    const reply = await fetch(`${venue.url}/info`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await reply.json()) as A
  }

  test('candles are those of the venue, and the time of the book says which one is open', async () => {
    const { timeMs } = await client.book('HYPE')
    const sinceMs = timeMs - 300 * 4 * hourMs
    const [rows, wire] = await Promise.all([
      client.candles('HYPE', '4h', sinceMs),
      ask<{ t: number; c: string }[]>({
        type: 'candleSnapshot',
        req: { coin: 'HYPE', interval: '4h', startTime: sinceMs },
      }),
    ])
    assert.ok(rows.length >= 300, `${rows.length} candles`)
    assert.deepEqual(
      rows.slice(0, -1).map(({ startMs, close }) => [startMs, Number(close)]),
      wire.slice(0, rows.length - 1).map(({ t, c }) => [t, Number(c)]),
    )
    const asText = rows.map((row) => ({ ...row, start: new Date(row.startMs).toISOString() }))
    const { candles, gaps, rejected } = historyOf(asText, '4h', timeMs)
    assert.deepEqual([gaps, rejected], [0, 0])
    assert.ok(candles.length === rows.length - 1 && candles.at(-1)!.endMs <= timeMs)
  })

  test('funding is read over several pages, an hour apart', async () => {
    const { timeMs } = await client.book('BTC')
    const rates = await client.fundingRates('BTC', timeMs - 40 * dayMs)
    assert.ok(rates.length > 500 && rates.length <= 40 * 24 + 1, `${rates.length} rates`)
    for (const [at, { atMs }] of rates.entries())
      assert.ok(at === 0 || Math.abs(atMs - rates[at - 1]!.atMs - hourMs) < 60_000, `a gap at ${at}`)
  })

  test('a book has both sides, the best level first', async () => {
    const { bids, asks } = await client.book('ETH')
    assert.ok(bids.length > 2 && asks.length > 2)
    assert.ok(Number(bids[0]!.price) < Number(asks[0]!.price))
    assert.ok(Number(bids[0]!.price) > Number(bids[1]!.price))
  })

  test('a market that the venue does not have has no history', async () => {
    assert.deepEqual(await client.candles('NOSUCH', '1d', 0), [])
  })

  test('long lists cost what the venue counts for them', () => {
    assert.equal(itemsWeight('candleSnapshot', Array(600).fill(0)), 10)
    assert.equal(itemsWeight('fundingHistory', Array(500).fill(0)), 25)
    assert.equal(itemsWeight('l2Book', Array(500).fill(0)), 0)
  })
})
