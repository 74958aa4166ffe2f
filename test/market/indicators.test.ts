import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as oracle from 'indicatorts'
import * as streaming from 'trading-signals'
import type { Candle } from '#market/candle.ts'
import { candlesMinOf, indicatorAt, indicatorIds, latestIndicators } from '#market/indicator-list.ts'
import { computeIndicators } from '#market/indicators.ts'
import { priceWalk } from './price-walk.ts'

const candles = priceWalk({ seed: 7, count: 2_000 })
const set = computeIndicators(candles)
const closes = candles.map(({ close }) => close)
const highs = candles.map(({ high }) => high)
const lows = candles.map(({ low }) => low)
const volumes = candles.map(({ volume }) => volume)

/** Averages that begin differently have met by then. */
const warmUp = 1_200

function assertSame(
  name: string,
  own: readonly number[],
  other: readonly (number | null | undefined)[],
  from = warmUp,
) {
  assert.equal(own.length, other.length, name)
  for (let at = from; at < own.length; at++) {
    const [a, b] = [own[at] ?? Number.NaN, other[at] ?? Number.NaN]
    const scale = Math.max(Math.abs(b), 1e-3)
    assert.ok(Math.abs(a - b) <= 1e-8 * scale, `${name} at ${at}: ${a} instead of ${b}`)
  }
}

test('the indicators equal those of another library after the warm-up', () => {
  assertSame('sma', set.sma20, oracle.sma(closes, { period: 20 }), 19)
  assertSame('sma', set.sma50, oracle.sma(closes, { period: 50 }), 49)
  assertSame('sma', set.sma200, oracle.sma(closes, { period: 200 }), 199)
  assertSame('ema', set.ema12, oracle.ema(closes, { period: 12 }))
  assertSame('ema', set.ema26, oracle.ema(closes, { period: 26 }))
  assertSame('ema', set.ema50, oracle.ema(closes, { period: 50 }))
  assertSame('rsi', set.rsi, oracle.rsi(closes, { period: 14 }))
  const macd = oracle.macd(closes)
  assertSame('macd', set.macd.line, macd.macdLine)
  assertSame('macd signal', set.macd.signal, macd.signalLine)
  const bands = oracle.bb(closes, { period: 20 })
  assertSame('upper band', set.bollinger.upper, bands.upper, 20)
  assertSame('lower band', set.bollinger.lower, bands.lower, 20)
  assertSame('atr', set.atr, oracle.rma(oracle.tr(highs, lows, closes), { period: 14 }))
  const raw = oracle.stoch(highs, lows, closes, { kPeriod: 14, dPeriod: 3 })
  assertSame('stochastic k', set.stochastic.k, raw.d, 16)
  assertSame('stochastic d', set.stochastic.d, oracle.sma(raw.d, { period: 3 }), 18)
  assertSame('obv', set.obv, oracle.obv(closes, volumes), 0)
  assertSame('donchian', set.donchian.upper, oracle.mmax(highs, { period: 20 }), 19)
  assertSame('donchian', set.donchian.lower, oracle.mmin(lows, { period: 20 }), 19)
})

/** Those that the first library lacks. */
test('direction, supertrend and daily average price equal those of a second library', () => {
  const adx = new streaming.ADX(14)
  const trend = new streaming.SuperTrend({ interval: 10, multiplier: 3 })
  let average = new streaming.VWAP()
  const rows = candles.map((candle, at) => {
    if (at > 0 && new Date(candle.startMs).getUTCHours() === 0) average = new streaming.VWAP()
    const strength = adx.update(candle, false)
    return {
      strength,
      plus: adx.pdi,
      minus: adx.mdi,
      trend: trend.update(candle, false),
      average: average.update(candle, false),
    }
  })
  assertSame(
    'adx',
    set.directional.adx,
    rows.map(({ strength }) => strength),
  )
  assertSame(
    '+di',
    set.directional.plus,
    rows.map(({ plus }) => (plus ?? 0) * 100),
  )
  assertSame(
    '-di',
    set.directional.minus,
    rows.map(({ minus }) => (minus ?? 0) * 100),
  )
  assertSame(
    'supertrend',
    set.supertrend.line,
    rows.map((row) => row.trend?.supertrend),
  )
  assert.ok(new Set(set.supertrend.isUp.slice(warmUp)).size === 2, 'the trend never turned')
  assertSame(
    'vwap',
    set.vwap,
    rows.map((row) => row.average),
    1,
  )
})

test('an indicator has no value before five times its period', () => {
  for (const id of indicatorIds) {
    const first = candlesMinOf(id) - 1
    assert.equal(indicatorAt(set, id, first - 1), undefined, id)
    assert.ok(Number.isFinite(indicatorAt(set, id, first)), id)
  }
  assert.deepEqual(latestIndicators(computeIndicators([])), {})
})

test('no later candle changes an indicator', () => {
  fc.assert(
    fc.property(fc.integer({ min: 60, max: 400 }), fc.integer({ min: 0, max: 1_000 }), (count, seed) => {
      const all = priceWalk({ seed, count: 420 })
      const before = computeIndicators(all.slice(0, count))
      const after = computeIndicators(all)
      for (const id of indicatorIds)
        assert.equal(indicatorAt(after, id, count - 1), indicatorAt(before, id, count - 1), id)
    }),
    { numRuns: 30 },
  )
})

test('a market that does not move has indicators of a market at rest', () => {
  const flat: Candle[] = priceWalk({ seed: 1, count: 400 }).map((candle) => ({
    ...candle,
    open: 5,
    high: 5,
    low: 5,
    close: 5,
    volume: 0,
  }))
  const found = latestIndicators(computeIndicators(flat))
  assert.equal(found.rsi_14, 50)
  assert.equal(found.adx_14, 0)
  assert.equal(found.stochastic_k, 50)
  assert.equal(found.vwap_day, undefined)
})
