import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVenueClock } from './venue-clock.ts'

test('a reading advances with our own clock, and expires', () => {
  let ours = 1_000
  const clock = createVenueClock(() => ours)
  assert.equal(clock.now(), undefined)
  clock.record(50_000)
  assert.equal(clock.now(), 50_000)
  ours += 1_999
  assert.equal(clock.now(), 51_999)
  ours += 2
  assert.equal(clock.now(), undefined)
  clock.record(70_000)
  assert.equal(clock.now(), 70_000)
})

test('a reading is discarded once our own clock was set back', () => {
  let ours = 10_000
  const clock = createVenueClock(() => ours)
  clock.record(50_000)
  ours = 9_000
  assert.equal(clock.now(), undefined)
})
