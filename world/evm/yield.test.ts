import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { growthPerSecond, yearlyBpsOf } from './yield.ts'

test('a yearly yield converts to a factor per second and back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 100_000 }), (bps) => yearlyBpsOf(growthPerSecond(bps)) === bps),
  )
})

test('no yield is exactly one, and the largest allowed yield fits the vault', () => {
  assert.equal(growthPerSecond(0), 10n ** 27n)
  assert.ok(growthPerSecond(100_000) <= 10n ** 27n + 10n ** 20n)
})
