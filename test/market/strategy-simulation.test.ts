import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type CandleColumns, mergedColumns, windowAt } from '#market/strategies/candle-columns.ts'
import { decide } from '#market/strategies/decide.ts'
import { decisionText, inputsSha256 } from '#market/strategies/decision-record.ts'
import type { GuardConfig } from '#market/strategies/guards.ts'
import { executeWithSlippage, type SimulationInput, simulateStrategy } from '#market/strategies/simulation.ts'
import type { ConditionConfig } from '#market/strategies/strategy.ts'
import { applyPrices, decideOnClose, openRun, type RunConfig } from '#market/strategies/strategy-run.ts'
import { columnWalk, configOf, farming, midnights, minuteMs, partOf, quarterMs } from './strategy-walk.ts'

const days = 14
const minutes = columnWalk({ seed: 11, count: days * 1_440 })
const quarters = mergedColumns(minutes, quarterMs)
const fromMs = quarters.startMs[1_000]!
const toMs = minutes.startMs.at(-1)! + minuteMs
const guards: GuardConfig = { on_trip: 'flatten' }
const free = { config: configOf(farming), guards }

const inputOf = (fields: Partial<SimulationInput> = {}): SimulationInput => ({
  config: { decision: free.config, guards, budgetMicros: null },
  assets: { BTC: { signal: quarters, execution: minutes, funding: [] } },
  fromMs,
  toMs,
  dayEnds: midnights(fromMs, days + 1),
  initialMicros: 1_000_000_000n,
  slippagePpm: 500n,
  ...fields,
})

const crossing: ConditionConfig = {
  type: 'condition',
  asset: 'BTC',
  side: 'long',
  order_usd: '900',
  leverage: 1,
  is_cross: true,
  slippage_bps: 50,
  enter_if: [{ left: 'macd_histogram', is: 'crosses_above', right: { value: '0' } }],
  exit_if: [{ left: 'macd_histogram', is: 'crosses_below', right: { value: '0' } }],
}

describe('the simulation of a strategy', () => {
  test('is the same twice, with its decisions and the hashes of their inputs', () => {
    const { decisions } = simulateStrategy(inputOf())
    const entries = decisions.filter(({ decision }) => decision.action === 'enter')
    assert.ok(entries.length > 5, `${entries.length} entries`)
    const again = simulateStrategy(inputOf())
    assert.deepEqual(again.decisions, decisions)
  })

  test('gives paper the same decisions for the same inputs, byte by byte', () => {
    const config: RunConfig = { decision: free.config, guards, budgetMicros: null }
    const { decisions } = simulateStrategy(inputOf())
    // Paper receives prices one by one; here the venue happens to trade as the candles say.
    const found: string[] = []
    let run = openRun(1_000_000_000n, midnights(fromMs, 0)[0]!)
    const ends = midnights(fromMs, days + 1)
    const execute = executeWithSlippage(500n)
    for (let at = minutes.startMs.indexOf(fromMs); at < minutes.startMs.length; at++) {
      const atMs = minutes.startMs[at]!
      const dayEndsMs = ends.find((end) => end > atMs)!
      const prices = [minutes.open[at]!, minutes.low[at]!, minutes.high[at]!, minutes.close[at]!]
      const isShort = [...run.account.positions.values()].some(({ isLong }) => !isLong)
      const isSelling = run.pending.some(({ side, reduce_only }) => side === 'sell' && !reduce_only)
      if (isShort || isSelling) [prices[1], prices[2]] = [prices[2]!, prices[1]!]
      const path = prices.map((price) => BigInt(price) * 100_000_000n)
      run = applyPrices(run, { asset: 'BTC', atMs, path, isExact: true, execute }, { config, dayEndsMs }).run
      const nowMs = atMs + minuteMs
      if (nowMs % quarterMs !== 0) continue
      const window = windowAt(quarters, quarters.startMs.indexOf(nowMs - quarterMs))
      const windows = window && { BTC: window }
      const decided = decideOnClose(run, { windows, nowMs }, config)
      run = decided.run
      if (decided.decision.action === 'hold') continue
      const text = decisionText(decided.decision)
      // What was recorded is enough to decide it again.
      const stored = JSON.parse(JSON.stringify({ state: decided.state, config: config.decision }))
      assert.equal(decisionText(decide(windows, stored.state, stored.config)), text)
      found.push(`${nowMs} ${inputsSha256(windows, decided.state, config.decision)} ${text}`)
    }
    const log = decisions
      .filter(({ atMs }) => atMs % quarterMs === 0)
      .map(({ atMs, inputsSha256: sha, decision }) => `${atMs} ${sha} ${decisionText(decision)}`)
    const whole = log.filter((_, at) => at < 12)
    assert.ok(whole.length > 5)
    assert.deepEqual(found.slice(0, whole.length), whole)
  })

  test('does not depend on candles before the window or after the end', () => {
    const start = 1_200
    const fromLater = quarters.startMs[start]!
    const until = quarters.startMs[start + 100]!
    const short = { signal: partOf(quarters, start - 1_000, start + 100), execution: minutes, funding: [] }
    const all = { signal: quarters, execution: minutes, funding: [] }
    const [a, b] = [short, all].map((BTC) =>
      simulateStrategy(inputOf({ assets: { BTC }, fromMs: fromLater, toMs: until })),
    )
    assert.equal(a!.logSha256, b!.logSha256)
    assert.equal(a!.decided, 100)
  })

  test('never makes money of nothing: what is left is the start, the trades and what is open', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), (seed) => {
        const walk = columnWalk({ seed, count: 1_400, spanMs: quarterMs, volatility: 0.003 })
        const from = walk.startMs[1_000]!
        const result = simulateStrategy(
          inputOf({
            config: { decision: configOf(crossing), guards, budgetMicros: null },
            assets: { BTC: { signal: walk, execution: walk, funding: fundingOf(walk) } },
            fromMs: from,
            toMs: walk.startMs.at(-1)! + quarterMs,
          }),
        )
        const net = result.trades.reduce((sum, { netMicros }) => sum + netMicros, 0n)
        if (result.openAtEnd === 0) assert.equal(result.finalMicros, 1_000_000_000n + net)
        else assert.ok(result.finalMicros < BigInt(Math.round(result.equity.usd.at(-1)! * 1e6)))
      }),
      { numRuns: 15 },
    )
  })

  test('stops at its budget, its guards and its balance', () => {
    const budget = simulateStrategy(
      inputOf({ config: { decision: free.config, guards, budgetMicros: 1_200_000_000n } }),
    )
    assert.equal(budget.decisions.filter(({ decision }) => decision.action === 'enter').length, 2)
    assert.ok(budget.holds.budget! > 0)
    const lossy = { ...guards, max_loss_usd: '3' }
    const tripped = simulateStrategy(
      inputOf({ config: { decision: free.config, guards: lossy, budgetMicros: null } }),
    )
    assert.deepEqual(
      tripped.guardTrips.map(({ guard }) => guard),
      ['max_loss'],
    )
    const { atMs } = tripped.guardTrips[0]!
    assert.ok(
      tripped.decisions.every((each) => each.atMs <= atMs + minuteMs || each.decision.action === 'exit'),
    )
    assert.equal(tripped.openAtEnd, 0)
  })

  test('reports the candles that are missing', () => {
    const holed = partOf(minutes, 0, minutes.startMs.length)
    const at = holed.startMs.indexOf(fromMs) + 77
    const missing: CandleColumns = {
      spanMs: minuteMs,
      startMs: holed.startMs.filter((_, index) => index !== at),
      open: holed.open.filter((_, index) => index !== at),
      high: holed.high.filter((_, index) => index !== at),
      low: holed.low.filter((_, index) => index !== at),
      close: holed.close.filter((_, index) => index !== at),
      volume: holed.volume.filter((_, index) => index !== at),
    }
    const history = { signal: quarters, execution: missing, funding: [] }
    assert.equal(simulateStrategy(inputOf({ assets: { BTC: history } })).gaps, 1)
  })

  test('runs a purchase at each of its times, and only then', () => {
    const slots = Array.from({ length: 10 }, (_, day) => fromMs + day * 3_600_000 + 30_000)
    const result = simulateStrategy(
      inputOf({
        config: {
          decision: configOf({ type: 'dca', asset: 'BTC', amount_usd: '20' }),
          guards: { on_trip: 'stop_entries' },
          budgetMicros: null,
        },
        slots,
      }),
    )
    assert.equal(result.decided, 10)
    assert.deepEqual(
      result.decisions.map(({ atMs }) => atMs),
      slots.map((slot) => Math.ceil(slot / minuteMs) * minuteMs),
    )
    assert.equal(result.openAtEnd, 1)
  })
})

const fundingOf = ({ startMs }: CandleColumns) =>
  Array.from(startMs)
    .filter((atMs) => atMs % 3_600_000 === 0)
    .map((atMs) => ({ atMs, rate: 0.000_05 }))
