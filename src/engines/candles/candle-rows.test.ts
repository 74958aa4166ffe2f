import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { gapsBetween } from './candle-rows.ts'

test('every candle that is not there is in one gap, and no other', () => {
  const spanMs = 60_000
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 60 }), (isThere) => {
      const firstMs = 7 * spanMs
      const starts = isThere.map((_, at) => firstMs + at * spanMs)
      const candles = starts.filter((_, at) => isThere[at]).map((startMs) => ({ startMs }))
      const endMs = firstMs + isThere.length * spanMs
      const gaps = gapsBetween(candles, { firstMs, endMs, spanMs })
      const missing = gaps.flatMap(({ fromMs, toMs, candles: count }) => {
        assert.equal(toMs - fromMs, count * spanMs)
        return Array.from({ length: count }, (_, at) => fromMs + at * spanMs)
      })
      assert.deepEqual(
        missing,
        starts.filter((_, at) => !isThere[at]),
      )
      assert.ok(gaps.every(({ fromMs }, at) => at === 0 || fromMs > gaps[at - 1]!.toMs))
    }),
  )
})
