import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  aggregate,
  bucketEnd,
  bucketStart,
  createPast,
  fillGaps,
  type Interval,
  intervals,
} from './candles.ts'
import { canonicalDecimal, notional, parseUnits, roundMicro, roundUpMicro, unitsText } from './decimal.ts'
import { fundingPayment, fundingRate } from './funding.ts'
import { addSample, averageOf, median } from './mark.ts'
import { useNonce } from './nonces.ts'
import { isOnTick, tickAt, toTick } from './ticks.ts'

test('a decimal keeps its value through text and back', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), (units) => {
      assert.equal(parseUnits(unitsText(units), 8), units)
    }),
  )
  assert.equal(canonicalDecimal('00025.2000'), '25.2')
  assert.equal(canonicalDecimal('-0.0'), '0')
  assert.equal(canonicalDecimal('.5'), '0.5')
  assert.equal(canonicalDecimal('1e5'), '1e5')
  assert.equal(parseUnits('0.123456789', 8), undefined)
  assert.equal(parseUnits('1e5', 8), undefined)
})

test('rounding to a micro-dollar is up for fees and to the nearest for funding', () => {
  assert.equal(roundUpMicro(101n), 200n)
  assert.equal(roundUpMicro(200n), 200n)
  assert.equal(roundMicro(149n), 100n)
  assert.equal(roundMicro(-150n), -200n)
})

test('prices have at most five figures and the decimals that the size leaves; whole numbers are always valid', () => {
  const btc = { sizeDecimals: 5, priceDecimals: 6 }
  const on = (text: string, grid: typeof btc) => isOnTick(Number(parseUnits(text, 8)), grid)
  assert.ok(on('97123', btc))
  assert.ok(on('123456', btc))
  assert.ok(!on('97123.4', btc))
  assert.ok(on('9712.3', btc))
  assert.ok(!on('9712.34', btc))
  assert.ok(!on('1.23', btc))
  const purr = { sizeDecimals: 0, priceDecimals: 8 }
  assert.ok(on('0.00012345', purr))
  assert.ok(!on('0.123456', purr))
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9_000_000_000_000 }),
      fc.integer({ min: 0, max: 5 }),
      fc.constantFrom(6, 8),
      (price, sizeDecimals, priceDecimals) => {
        const grid = { sizeDecimals, priceDecimals }
        const snapped = toTick(price, grid)
        assert.ok(isOnTick(snapped, grid), `${price} became ${snapped}`)
        assert.ok(Math.abs(snapped - price) <= tickAt(price, grid))
        assert.equal((BigInt(snapped) * 1_000n) % 10n ** BigInt(sizeDecimals), 0n)
      },
    ),
  )
})

test('the notional of a valid price and size is exact to the micro-dollar', () => {
  assert.equal(notional(9_712_300_000_000, 123_456, 5), (9_712_300_000_000n * 123_456n) / 100_000n)
})

test('the funding rate equals known values', () => {
  assert.equal(fundingRate(-5_591_732n), -73_966n)
  assert.equal(fundingRate(0n), 125_000n)
  assert.equal(fundingRate(10_000_000_000n), 400_000_000n)
  assert.equal(fundingRate(-10_000_000_000n), -400_000_000n)
  assert.equal(fundingPayment(10_000, 10_000_000_000_000, 125_000n, 5), 12_500_000n)
  assert.equal(fundingPayment(-10_000, 10_000_000_000_000, 125_000n, 5), -12_500_000n)
})

test('the mark is a median of moving averages', () => {
  assert.equal(median([3, 1, 2]), 2)
  assert.equal(median([4, 1, 2, 3]), 2.5)
  const average = { sum: 0, weight: 0 }
  assert.equal(averageOf(average, 7), 7)
  addSample(average, 10, 3, 150)
  assert.equal(averageOf(average, 7), 10)
  addSample(average, 20, 3, 150)
  const fade = Math.exp(-3 / 150)
  assert.ok(Math.abs(averageOf(average, 0) - (10 * fade + 20) / (fade + 1)) < 1e-9)
})

test('each nonce is accepted once, within its window, above the smallest of the last hundred', () => {
  const nowMs = 1_800_000_000_000
  const set: number[] = []
  for (let i = 0; i < 150; i += 1) assert.equal(useNonce(set, nowMs + i, nowMs), undefined)
  assert.equal(set.length, 100)
  assert.equal(useNonce(set, nowMs + 149, nowMs), `Invalid nonce: duplicate nonce ${nowMs + 149}`)
  assert.match(useNonce(set, nowMs + 49, nowMs) ?? '', /lower than the smallest/)
  assert.match(useNonce(set, nowMs - 2 * 86_400_000, nowMs) ?? '', /allowed time range/)
  assert.match(useNonce(set, nowMs + 86_400_000, nowMs) ?? '', /allowed time range/)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 300 }), (nonces) => {
      const seen: number[] = []
      const taken = nonces.filter((nonce) => useNonce(seen, nowMs + nonce, nowMs) === undefined)
      assert.equal(new Set(taken).size, taken.length)
      const highest = [...taken].sort((a, b) => b - a).slice(0, 100)
      assert.deepEqual(
        seen,
        highest.reverse().map((nonce) => nowMs + nonce),
      )
    }),
  )
})

test('candles of every interval are contiguous and add up to the same volume', () => {
  const genesisMs = Date.UTC(2026, 4, 17, 13, 37, 12)
  const options = { seed: 5, genesisMs, price: 4_000_000_000, lotsPerMinute: 1_000 }
  const past = createPast(options).since(0)
  const inParts = createPast(options)
  for (const days of [1, 40, 100]) {
    const fromMs = genesisMs - days * 86_400_000
    const part = past.filter(({ startMs, spanMs }) => startMs + spanMs > fromMs)
    assert.deepEqual(inParts.since(fromMs), part)
  }
  assert.deepEqual(inParts.since(0), past)
  assert.ok(past.filter(({ spanMs }) => spanMs === 60_000).length >= 35 * 1_440)
  for (const interval of Object.keys(intervals) as Interval[]) {
    const candles = fillGaps(aggregate(past, interval, 0, genesisMs), interval)
    const closed = intervals[interval] <= 86_400_000 ? 1_100 : 2
    assert.ok(candles.length > closed, `${candles.length} candles of ${interval}`)
    candles.forEach((candle, i) => {
      assert.equal(bucketStart(candle.startMs, interval), candle.startMs)
      const before = candles[i - 1]
      if (before) assert.equal(bucketEnd(before.startMs, interval) + 1, candle.startMs, interval)
    })
  }
  const fromMs = genesisMs - 86_400_000
  const volume = (interval: Interval) =>
    aggregate(past, interval, bucketStart(fromMs, '1h'), genesisMs).reduce(
      (sum, candle) => sum + candle.volume,
      0,
    )
  assert.equal(volume('1m'), volume('15m'))
})
