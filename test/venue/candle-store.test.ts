/** The stored candles of a market, where the venue answers with an earlier state or leaves something out. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Series } from '#engines/candles/candle-rows.ts'
import { type CandleStore, createCandleStore } from '#engines/candles/candle-store.ts'
import { systemClock } from '#kernel/clock.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { silentLog } from '#kernel/log.ts'
import { type CandleSpan, candleSpanMs } from '#market/candle.ts'
import { query } from '#store/query.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { createHyperliquid, type Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type RunningVenue, startVenue } from '../../world/conformance/venue/venue.ts'
import { eventually } from '../harness/gateway.ts'
import { type LaggingVenue, laggingVenue } from '../harness/lagging-venue.ts'
import { ownDatabase } from '../harness/own-database.ts'

type WireCandle = { t: number; T: number; o: string; c: string; h: string; l: string; v: string; n: number }
const [market, span] = ['ETH', '1h'] as const
const spanMs = candleSpanMs[span]
const owner = 'a user'
const followed: CandleSpan[] = ['1m', '5m', '15m', '1h']
const assets = ['BTC', 'ETH', 'SOL']

describe('stored candles', () => {
  let venue: RunningVenue
  let lag: LaggingVenue
  let client: Hyperliquid
  let store: CandleStore
  let home: Awaited<ReturnType<typeof ownDatabase>>
  let nowMs = Date.now()
  const parts = new AsyncDisposableStack()
  const net = parts.use(createHttpClient({ failpoints: noFailpoints }))
  const storeOf = (weightPerMinute: number) =>
    createCandleStore({
      db: home.database.pool,
      clock: { now: () => new Date(nowMs) },
      log: silentLog,
      venue: client,
      weightPerMinute,
      isOnDuty: () => true,
    })
  before(async () => {
    home = parts.use(await ownDatabase())
    venue = await startVenue()
    parts.defer(() => venue.close())
    lag = parts.use(await laggingVenue(venue.url))
    client = createHyperliquid({ url: lag.url, net, clock: systemClock })
    store = storeOf(0)
  })
  beforeEach(() => lag.set({}))
  after(() => parts.disposeAsync())

  async function venueMs(): Promise<number> {
    const reply = await fetch(`${venue.url}/info`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'exchangeStatus' }),
    })
    return ((await reply.json()) as { time: number }).time
  }
  /** Moves the venue a while beyond its next close, and returns the time of the ten candles before this. */
  async function passClose(beyondMs: number) {
    const nowMs = await venueMs()
    const toMs = (Math.floor(nowMs / spanMs) + 1) * spanMs
    await venue.control('POST', '/advance', { ms: toMs - nowMs + beyondMs })
    return { fromMs: toMs - 10 * spanMs, toMs }
  }
  /** Asks the venue for closed candles as any client does. */
  async function closesOf(time: { fromMs: number; toMs: number }): Promise<number[][]> {
    const reply = await fetch(`${venue.url}/info`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        type: 'candleSnapshot',
        req: { coin: market, interval: span, startTime: time.fromMs, endTime: time.toMs - 1 },
      }),
    })
    return ((await reply.json()) as WireCandle[]).map(({ t, c, v }) => [t, Number(c), Number(v)])
  }
  async function storedOf(time: { fromMs: number; toMs: number }): Promise<number[][]> {
    const { startMs, close, volume } = await store.columns({ market, span }, time)
    return Array.from(startMs, (at, n) => [at, close[n]!, volume[n]!])
  }
  /** The time of the venue may be as old as its book, so a close is seen a moment later. */
  const filledUntil = (time: { fromMs: number; toMs: number }, series: Series = { market, span }) =>
    eventually(async () => (await store.fillUntil(series, time, owner)) || undefined, 'the close')
  const rewriteCandles = (rewrite: (rows: WireCandle[]) => WireCandle[]) =>
    lag.set({
      rewrite: (type, answer) => (type === 'candleSnapshot' ? rewrite(answer as WireCandle[]) : undefined),
    })

  test('a candle that the answer lacks just after its close is asked for again', async () => {
    const time = await passClose(300)
    rewriteCandles((rows) => rows.filter(({ t }) => t < time.toMs - spanMs))
    assert.equal(await store.fillUntil({ market, span }, time, owner), false)
    const { gaps } = await store.read({ market, span }, { limit: 10 }, owner)
    assert.deepEqual(gaps, [], 'what has not come yet is no gap')
    lag.set({})
    await filledUntil(time)
    assert.deepEqual(await storedOf(time), await closesOf(time))
    assert.equal((await storedOf(time)).length, 10)
  })

  test('a candle is stored as it was at its close, not as a moment before it', async () => {
    const time = await passClose(300)
    rewriteCandles((rows) =>
      rows
        .filter(({ t }) => t < time.toMs)
        .map((row) =>
          row.t === time.toMs - spanMs ? { ...row, c: row.o, h: row.o, l: row.o, v: '0.01' } : row,
        ),
    )
    assert.equal(await store.fillUntil({ market, span }, time, owner), false)
    lag.set({})
    await filledUntil(time)
    assert.deepEqual(await storedOf(time), await closesOf(time))
  })

  test('a market that has not traded since its close is not waited for, and a hole is reported', async () => {
    const time = await passClose(60_000)
    const holeMs = time.toMs - 3 * spanMs
    rewriteCandles((rows) => rows.filter(({ t }) => t < time.toMs && t !== holeMs))
    const unread = { market: 'SOL', span } as const
    await filledUntil(time, unread)
    const { candles, gaps } = await store.read(unread, { limit: 5 }, owner)
    assert.equal(candles.length, 4)
    assert.deepEqual(gaps, [{ fromMs: holeMs, toMs: holeMs + spanMs, candles: 1 }])
  })

  test('a candle that an answer lacked is asked for again by who reads its time, and not each time', async () => {
    const time = await passClose(60_000)
    const holeMs = time.toMs - 3 * spanMs
    const series = { market: 'BTC', span } as const
    rewriteCandles((rows) => rows.filter(({ t }) => t < time.toMs && t !== holeMs))
    await filledUntil(time, series)
    const has = async () => (await store.columns(series, time)).startMs.includes(holeMs)
    await filledUntil(time, series)
    const asked = lag.asked('candleSnapshot')
    await filledUntil(time, series)
    assert.deepEqual([await has(), lag.asked('candleSnapshot') - asked], [false, 0])
    lag.set({})
    nowMs += 15 * 60_000
    await filledUntil(time, series)
    assert.equal(await has(), true)
  })

  test('all that is followed is filled by itself, within a share of the weight', async () => {
    const series = assets.flatMap((asset) => followed.map((each) => ({ market: asset, span: each })))
    for (const each of series) await store.fill(each, (await venueMs()) - candleSpanMs[each.span], owner)
    const asked = lag.asked('candleSnapshot')
    const perMinute = 60_000
    const startedAt = performance.now()
    await using _filling = storeOf(perMinute).start()
    await eventually(async () => {
      const rows = await query<{ count: number }>(
        home.database.pool,
        'select count(*)::integer as count from candle group by market, span having count(*) >= 4990',
        [],
      )
      return rows.length === series.length ? true : undefined
    }, 'the newest 5,000 candles of each series')
    const pages = lag.asked('candleSnapshot') - asked
    // The weight of the last page is waited for after it.
    const weight = (pages - 2) * (20 + 2_500 / 60)
    const tookMs = performance.now() - startedAt
    assert.ok(
      pages >= series.length * 2 && tookMs >= (weight / perMinute) * 60_000 * 0.9,
      `${pages} pages, ${tookMs} ms`,
    )
  })
})
