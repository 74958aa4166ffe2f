import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshGateway, newAgent } from '../harness/gateway.ts'
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
const minuteMs = 60_000

describe('the history of a market', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let person: Person
  before(async () => {
    gateway = await freshGateway()
    person = await personOf(gateway.url, await newAgent(gateway.url))
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const read = async <B = Candles>(path: string) => person.call<B>(`GET /v1/markets/${path}`)

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
      assert.ok(starts.at(-1)! + minutes * minuteMs <= Date.parse(body.as_of), 'the open candle is not shown')
      const last = body.candles.at(-1)!
      assert.ok(Number(last.low) <= Number(last.open) && Number(last.close) <= Number(last.high))
    }
  })

  test('has a month of minutes, and says of what it has none', async () => {
    const newest = (await read('BTC/candles?interval=1m&limit=1')).body.candles[0]!
    const before = (days: number) =>
      new Date(Date.parse(newest.start) - days * 1_440 * minuteMs).toISOString()
    const old = (await read(`BTC/candles?interval=1m&limit=1000&to=${before(30)}`)).body
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

  test('refuses what it does not know', async () => {
    assert.equal((await read('NOPE/candles')).status, 422)
    assert.equal((await read('BTC/candles?interval=7m')).status, 422)
    assert.equal((await read('BTC/candles?limit=1001')).status, 422)
    const times = 'from=2026-02-02T00:00:00.000Z&to=2026-02-01T00:00:00.000Z'
    assert.equal((await read(`BTC/candles?${times}`)).status, 422)
    assert.equal((await read('MATIC/candles')).status, 409)
  })
})
