import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createMarketTools } from '#features/chat/market-reads.ts'
import { systemClock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { historyOf } from '#market/candle.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { createHyperliquid, type Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { createRateBudget, itemsWeight } from '#upstreams/hyperliquid/rate-budget.ts'
import { type RunningVenue, startVenue } from '../../world/conformance/venue/venue.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

describe('the history of a market', () => {
  let venue: RunningVenue
  let client: Hyperliquid
  const net = createHttpClient({ failpoints: noFailpoints })
  before(async () => {
    venue = await startVenue()
    client = createHyperliquid({ url: venue.url, net, clock: systemClock })
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
      client.candles('HYPE', '4h', { sinceMs, count: 5_000 }),
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
    assert.deepEqual(await client.candles('NOSUCH', '1d', { sinceMs: 0, count: 100 }), [])
  })

  test('reads of one user leave the budget of requests to others', async () => {
    const perMinute = 360
    const nowMs = () => performance.now()
    const budget = createRateBudget({ perMinute, nowMs, after: () => () => {} })
    const limited = createHyperliquid({ url: venue.url, net, clock: systemClock, egress: [{ budget }] })
    const readBy = (owner: string, market: string) =>
      limited.candles(market, '1d', { sinceMs: 0, count: 100 }, owner)
    for (const market of ['BTC', 'ETH']) await readBy('one', market)
    await assert.rejects(readBy('one', 'DOGE'), (fault: Fault) => fault.extras.budget_of === 'account')
    assert.ok((await readBy('another', 'DOGE')).length > 100)
    // What is known costs nobody anything.
    assert.ok((await readBy('one', 'DOGE')).length > 100)
  })

  test('an answer waits for its share of the budget, and no longer than it is worth', async () => {
    const timeMs = Date.UTC(2026, 0, 1)
    let asked = 0
    const toolsAfter = (refusals: number, retry_after: number) =>
      createMarketTools({
        ...client,
        async book() {
          asked += 1
          if (asked <= refusals)
            throw new Fault('unavailable', 'The budget is used up', { extras: { retry_after } })
          return { timeMs, bids: [], asks: [] }
        },
      }).get('market_book')!
    const context = { userId: 'one', signal: new AbortController().signal }
    assert.deepEqual(await toolsAfter(2, 0.01).call({ asset: 'BTC' }, context), {
      asset: 'BTC',
      as_of: '2026-01-01T00:00:00.000Z',
      bids: [],
      asks: [],
    })
    asked = 0
    await assert.rejects(async () => toolsAfter(1, 40).call({ asset: 'BTC' }, context), /used up/)
    assert.equal(asked, 1)
    for (const input of [
      {},
      { asset: 'BTC', timeframe: '7h', count: 5 },
      { asset: 'BTC', timeframe: '1h', count: 5_000 },
    ])
      await assert.rejects(
        async () => createMarketTools(client).get('market_candles')!.call(input, context),
        (fault: Fault) => fault.code === 'validation',
      )
    await assert.rejects(
      async () => createMarketTools(undefined).get('market_book')!.call({ asset: 'BTC' }, context),
      /No venue/,
    )
  })

  test('long lists cost what the venue counts for them', () => {
    assert.equal(itemsWeight('candleSnapshot', 600), 10)
    assert.equal(itemsWeight('fundingHistory', 500), 25)
    assert.equal(itemsWeight('l2Book', 500), 0)
  })
})
