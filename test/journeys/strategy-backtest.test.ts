import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshGateway, newAgent } from '../harness/gateway.ts'
import { type Person, personOf } from './users.ts'

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
const dayMs = 86_400_000

describe('a backtest of a strategy', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let person: Person
  let now: number
  before(async () => {
    gateway = await freshGateway()
    person = await personOf(gateway.url, await newAgent(gateway.url))
    const { body } = await person.call<{ as_of: string }>('GET /v1/markets/BTC/candles?limit=1')
    now = Math.floor(Date.parse(body.as_of) / dayMs) * dayMs
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const backtest = async <B = Backtest>(body: object) =>
    person.call<B>('POST /v1/strategies/backtest?wait=true&timeout=60', { body })
  const daysAgo = (days: number) => new Date(now - days * dayMs).toISOString()
  const farming = { type: 'day_trade_farming', asset: 'hl:perp:BTC', order_notional_usd: '300', leverage: 3 }

  test('of 20 days of day trades counts every close, fills by minutes, and is the same twice', async () => {
    const body = { strategy: farming, from: daysAgo(20), to: daysAgo(0), timezone: 'America/New_York' }
    const { status, body: first } = await backtest(body)
    assert.deepEqual([status, first.status, first.error], [200, 'completed', null], JSON.stringify(first))
    const { result } = first
    assert.deepEqual([result.data.interval, result.data.execution_interval, result.gaps], ['15m', '1m', 0])
    const held = Object.values(result.holds).reduce((sum, count) => sum + count, 0)
    assert.ok(result.decisions >= 20 * 96 && held <= result.decisions)
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
