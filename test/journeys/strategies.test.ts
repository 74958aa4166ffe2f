/** What is known of markets, and what strategies would have done there. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshGateway, newAgent } from '../harness/gateway.ts'
import { bySize } from '../proof/support/seed.ts'
import { type Person, personOf } from './users.ts'

type Candle = { start: string; open: string; high: string; low: string; close: string; volume: string }
type Candles = {
  asset: string
  interval: string
  as_of: string
  candles: Candle[]
  gaps: { from: string; to: string; candles: number }[]
}
type Funding = { asset: string; rates: { at: string; rate: string }[] }
type Backtest = {
  status: string
  error: { code: string; message: string; details?: { earliest?: string } } | null
  result: {
    trades: number
    decisions: number
    holds: Record<string, number>
    total_return: string
    final_usd: string
    fees_usd: string
    gaps: number
    open_at_end: number
    log_sha256: string
    data: { interval: string; execution_interval: string; from: string; to: string }
    artifacts: { name: string; url: string; size: number }[]
  }
}
type Refusal = { detail: { loc: string[]; type: string }[] }
const minuteMs = 60_000
const dayMs = 1_440 * minuteMs

describe('the past', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let person: Person
  before(async () => {
    gateway = await freshGateway()
    person = await personOf(gateway.url, await newAgent(gateway.url))
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const read = async <B = Candles>(path: string) => person.call<B>(`GET /v1/markets/${path}`)

  describe('of a market', () => {
    test('has 1,000 closed candles of every interval, without a gap', async () => {
      for (const [interval, minutes] of [
        ['1m', 1],
        ['5m', 5],
        ['15m', 15],
        ['1h', 60],
        ['12h', 720],
        ['1d', 1_440],
      ] as const) {
        const { status, body } = await read(`hl:perp:BTC/candles?interval=${interval}&limit=1000`)
        assert.equal(status, 200, JSON.stringify(body).slice(0, 300))
        assert.deepEqual([body.asset, body.interval, body.gaps], ['BTC', interval, []])
        assert.equal(body.candles.length, 1_000)
        const starts = body.candles.map(({ start }) => Date.parse(start))
        assert.ok(starts.every((at, index) => index === 0 || at - starts[index - 1]! === minutes * minuteMs))
        assert.ok(
          starts.at(-1)! + minutes * minuteMs <= Date.parse(body.as_of),
          'the open candle is not shown',
        )
        const last = body.candles.at(-1)!
        assert.ok(Number(last.low) <= Number(last.open) && Number(last.close) <= Number(last.high))
      }
    })

    test('has old minutes, and says of what it has none', async () => {
      const daysOfMinutes = bySize({ short: 5, full: 30, nightly: 30 })
      const newest = (await read('BTC/candles?interval=1m&limit=1')).body.candles[0]!
      const before = (days: number) =>
        new Date(Date.parse(newest.start) - days * 1_440 * minuteMs).toISOString()
      const old = (await read(`BTC/candles?interval=1m&limit=1000&to=${before(daysOfMinutes)}`)).body
      assert.deepEqual([old.candles.length, old.gaps], [1_000, []])
      const older = (await read(`BTC/candles?interval=1m&limit=1000&to=${before(90)}`)).body
      assert.deepEqual(older.candles, [])
      assert.deepEqual(older.gaps, [{ from: older.gaps[0]!.from, to: before(90), candles: 1_000 }])
    })

    test('answers the same candles again', async () => {
      const to = '2026-01-01T00:00:00.000Z'
      const path = `ETH/candles?interval=1d&limit=50&to=${to}`
      const first = (await read(path)).body
      assert.equal(first.candles.length, 50)
      assert.deepEqual((await read(path)).body.candles, first.candles)
    })

    test('has the hourly funding of as many days as were asked for', async () => {
      const { body } = await read<Funding>('BTC/funding?days=3')
      assert.ok(body.rates.length >= 72, `${body.rates.length} rates`)
      assert.ok(body.rates.every(({ at, rate }) => Date.parse(at) > 0 && Number.isFinite(Number(rate))))
    })

    test('has a book of both sides, the best prices first', async () => {
      type Book = { asset: string } & Record<'bids' | 'asks', { price: string; size: string }[]>
      const { status, body } = await read<Book>('hl:perp:ETH/book?levels=3')
      assert.deepEqual([status, body.asset, body.bids.length, body.asks.length], [200, 'ETH', 3, 3])
      const prices = [...body.bids.toReversed(), ...body.asks].map(({ price }) => Number(price))
      assert.deepEqual(
        prices,
        prices.toSorted((a, b) => a - b),
      )
      assert.ok([...body.bids, ...body.asks].every(({ size }) => Number(size) > 0))
      assert.equal((await read('NOPE/book')).status, 422)
      assert.equal((await read('BTC/book?levels=21')).status, 422)
    })

    test('refuses what it does not know', async () => {
      assert.equal((await read('NOPE/candles')).status, 422)
      assert.equal((await read('BTC/candles?interval=7m')).status, 422)
      assert.equal((await read('BTC/candles?limit=1001')).status, 422)
      const times = 'from=2026-02-02T00:00:00.000Z&to=2026-02-01T00:00:00.000Z'
      assert.equal((await read(`BTC/candles?${times}`)).status, 422)
      assert.equal((await read('MATIC/candles')).status, 409)
    })
  })

  describe('of a strategy', () => {
    let now: number
    before(async () => {
      const { body } = await read('BTC/candles?limit=1')
      now = Math.floor(Date.parse(body.as_of) / dayMs) * dayMs
    })

    const backtest = async <B = Backtest>(body: object) =>
      person.call<B>('POST /v1/strategies/backtest?wait=true&timeout=60', { body })
    const daysAgo = (days: number) => new Date(now - days * dayMs).toISOString()
    const days = bySize({ short: 4, full: 20, nightly: 20 })
    const farming = {
      type: 'day_trade_farming',
      asset: 'hl:perp:BTC',
      order_notional_usd: '300',
      leverage: 3,
    }

    test('of day trades counts every close, fills by minutes, and is the same twice', async () => {
      const body = { strategy: farming, from: daysAgo(days), to: daysAgo(0), timezone: 'UTC' }
      const { status, body: first } = await backtest(body)
      assert.deepEqual([status, first.status, first.error], [200, 'completed', null], JSON.stringify(first))
      const { result } = first
      assert.deepEqual([result.data.interval, result.data.execution_interval, result.gaps], ['15m', '1m', 0])
      const held = Object.values(result.holds).reduce((sum, count) => sum + count, 0)
      assert.ok(result.decisions >= days * 96 && held <= result.decisions)
      assert.equal(result.open_at_end, 0)
      assert.deepEqual(
        result.artifacts.map(({ name }) => name),
        ['report.md', 'equity.png', 'trades.csv', 'decisions.jsonl'],
      )
      const [report, , csv, decisions] = await Promise.all(
        result.artifacts.map(async ({ url }) => (await fetch(url)).text()),
      )
      assert.match(report!, /^# Backtest: day trade farming of BTC$/m)
      assert.equal(csv!.trim().split('\r\n').length, result.trades + 1)
      const lines = decisions!
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      assert.equal(lines.length, result.decisions - held)
      assert.ok(lines.every(({ inputs_sha256: sha }) => /^[0-9a-f]{64}$/.test(sha)))
      const again = (await backtest(body)).body.result
      assert.deepEqual([again.log_sha256, again.final_usd], [result.log_sha256, result.final_usd])
    })

    test('buys at the times of its schedule, within its budget', async () => {
      const strategy = { type: 'dca', asset: 'ETH', amount_usd: '50' }
      const body = {
        strategy,
        from: daysAgo(10),
        to: daysAgo(0),
        schedule: 'every day at 09:00',
        budget_usd: '220',
      }
      const { body: made } = await backtest(body)
      assert.equal(made.error, null, JSON.stringify(made))
      assert.equal(made.result.decisions, 10)
      assert.equal(made.result.holds.budget, 6)
      assert.equal(made.result.open_at_end, 1)
      assert.ok(Number(made.result.fees_usd) > 0)
    })

    test('says from when on there are enough candles', async () => {
      const strategy = { type: 'condition', asset: 'BTC', interval: '1d', order_notional_usd: '100' }
      const rising = { left: 'price', is: 'above', right: 'sma_50' }
      const body = { strategy: { ...strategy, enter_if: [rising] }, from: daysAgo(300), to: daysAgo(200) }
      const { body: made } = await backtest(body)
      assert.equal(made.status, 'failed', JSON.stringify(made))
      const { earliest } = made.error!.details!
      assert.ok(Date.parse(earliest!) > Date.parse(daysAgo(300)))
      const later = await backtest({ ...body, from: earliest, to: daysAgo(0) })
      assert.equal(later.body.status, 'completed', JSON.stringify(later.body))
    })

    test('refuses fields of other types, unknown markets, zones and times', async () => {
      const from = daysAgo(5)
      for (const [body, field] of [
        [{ strategy: { ...farming, asset: 'NOPE' }, from }, 'asset'],
        [{ strategy: { ...farming, asset: 'ARB' }, from }, 'asset'],
        [{ strategy: { ...farming, amount_usd: '5' }, from }, 'amount_usd'],
        [{ strategy: { ...farming, order_size: '0.1' }, from }, 'order_notional_usd'],
        [{ strategy: { type: 'dca', asset: 'BTC', amount_usd: '20' }, from }, 'schedule'],
        [{ strategy: farming, from, timezone: 'Mars/Base' }, 'timezone'],
        [{ strategy: farming, from, to: daysAgo(6) }, 'from'],
        [{ strategy: { ...farming, leverage: 51 }, from }, 'leverage'],
      ] as const) {
        const { status, body: refusal } = await backtest<Refusal>(body)
        assert.equal(status, 422, JSON.stringify(refusal))
        assert.equal(refusal.detail[0]!.loc.at(-1), field, JSON.stringify(refusal.detail))
      }
    })
  })
})
