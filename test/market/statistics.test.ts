import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isDecimal } from '#kernel/money/money.ts'
import { historyOf } from '#market/candle.ts'
import { decimalText } from '#market/decimal-text.ts'
import { computeIndicators } from '#market/indicators.ts'
import { levelsOf, pivotsOf, turnsOf } from '#market/levels.ts'
import { regimeAt } from '#market/regime.ts'
import * as statistics from '#market/statistics.ts'
import { priceWalk, walkStartMs } from './price-walk.ts'

const near = (value: number | undefined, expected: number) =>
  assert.ok(Math.abs((value ?? Number.NaN) - expected) < 1e-9, `${value} instead of ${expected}`)
const values = fc.array(fc.double({ min: 0.1, max: 1_000, noNaN: true }), { minLength: 3, maxLength: 60 })

test('known figures of statistics', () => {
  const interval = statistics.wilsonInterval(8, 10)
  near(interval?.low, 0.490162472)
  near(interval?.high, 0.943317849)
  near(statistics.deviationOf([2, 4, 4, 4, 5, 5, 7, 9]), Math.sqrt(32 / 7))
  near(statistics.annualisedVolatility([0.01, -0.01, 0.02, 0], 365), Math.sqrt(365) * 0.012909944487)
  near(statistics.carryOf(0.0000125), 0.1095)
  near(statistics.maxDrawdown([1, 2, 1.5, 3, 1.2, 4]).fraction, 0.6)
  near(statistics.betaOf([0.02, -0.02, 0.04], [0.01, -0.01, 0.02]), 2)
  near(statistics.correlationOf([0.02, -0.02, 0.04], [0.01, -0.01, 0.02]), 1)
  assert.equal(statistics.betaOf([1, 2, 3], [1, 1, 1]), undefined)
  assert.equal(statistics.wilsonInterval(0, 0), undefined)
})

test('the deepest fall is that of every pair of closes', () => {
  fc.assert(
    fc.property(values, (closes) => {
      const falls = closes.flatMap((peak, at) => closes.slice(at).map((close) => 1 - close / peak))
      near(statistics.maxDrawdown(closes).fraction, Math.max(0, ...falls))
    }),
  )
})

test('intervals contain their estimate and lie within their bounds', () => {
  fc.assert(
    fc.property(
      values,
      fc.integer({ min: 1, max: 500 }),
      fc.integer({ min: 0, max: 500 }),
      (all, trials, wins) => {
        const successes = Math.min(trials, wins)
        const rate = statistics.wilsonInterval(successes, trials)!
        assert.ok(rate.low >= 0 && rate.high <= 1)
        assert.ok(rate.low <= successes / trials && successes / trials <= rate.high)
        const mean = statistics.bootstrapMean(all, 1)!
        assert.ok(mean.low >= Math.min(...all) - 1e-9 && mean.high <= Math.max(...all) + 1e-9)
        assert.deepEqual(statistics.bootstrapMean(all, 1), mean)
      },
    ),
    { numRuns: 30 },
  )
})

test('open candles, repeated ones and ones that are none are left out', () => {
  const row = (hour: number, close = '10') => ({
    start: new Date(walkStartMs + hour * 3_600_000).toISOString(),
    open: '10',
    high: '11',
    low: '9',
    close,
    volume: '5',
  })
  const wrong = [
    { ...row(5), low: '12' },
    { ...row(5), close: 'n/a' },
    { ...row(5), low: '0' },
    { ...row(5), volume: '-1' },
  ]
  const nowMs = walkStartMs + 4 * 3_600_000 - 1
  const history = historyOf([row(2), row(0), row(0, '9.5'), row(3), ...wrong], '1h', nowMs)
  assert.deepEqual(
    history.candles.map(({ startMs, close }) => [(startMs - walkStartMs) / 3_600_000, close]),
    [
      [0, 9.5],
      [2, 10],
    ],
  )
  assert.deepEqual([history.gaps, history.rejected], [1, 4])
})

test('levels are turning points, the nearest first, on both sides of the close', () => {
  const candles = priceWalk({ seed: 12, count: 600 })
  const set = computeIndicators(candles)
  const levels = levelsOf(candles, set.atr.at(-1)!)
  const close = candles.at(-1)!.close
  assert.ok(levels.length > 2)
  const turns = turnsOf(candles)
  for (const { kind, price, touches } of levels) {
    assert.equal(price < close, kind === 'support')
    assert.ok(turns.filter((turn) => Math.abs(turn.price - price) <= set.atr.at(-1)!).length >= touches)
  }
  assert.deepEqual(levelsOf(candles, Number.NaN), [])
  const { pivot, resistance1, support1 } = pivotsOf({ ...candles[0]!, high: 12, low: 9, close: 9 })
  assert.deepEqual([pivot, resistance1, support1], [10, 11, 8])
})

test('a trend needs strength and averages in its order', () => {
  const regimeOf = (drift: number, volatility = 0.002) => {
    const candles = priceWalk({ seed: 2, count: 500, drift, volatility })
    return regimeAt(computeIndicators(candles), candles.length - 1)
  }
  assert.equal(regimeOf(0.004), 'up')
  assert.equal(regimeOf(-0.004), 'down')
  const young = priceWalk({ seed: 2, count: 200, drift: 0.004 })
  assert.equal(regimeAt(computeIndicators(young), 199), 'unknown')
  const walk = priceWalk({ seed: 8, count: 900 })
  const set = computeIndicators(walk)
  assert.deepEqual([...new Set(walk.map((_, at) => regimeAt(set, at)))].sort(), [
    'down',
    'range',
    'unknown',
    'up',
  ])
})

test('computed numbers become decimal text with twelve digits', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, min: -1e18, max: 1e18 }), (value) => {
      const text = decimalText(value)
      assert.ok(text !== undefined && isDecimal(text), String(value))
      assert.ok(Math.abs(Number(text) - value) <= Math.max(Math.abs(value) * 1e-11, 1e-17))
    }),
  )
  assert.deepEqual([Number.NaN, Number.POSITIVE_INFINITY, undefined].map(decimalText), [
    undefined,
    undefined,
    undefined,
  ])
})
