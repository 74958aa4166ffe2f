import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prices } from './prices.ts'

const at = (price: string) => new Map([['BTC', price]])

function stage() {
  const now = { ms: 10_000, hears: true }
  return { now, known: prices({ nowMs: () => now.ms, hears: () => now.hears }) }
}

test('an answer is shared for a moment, from the time of the question', () => {
  const { now, known } = stage()
  assert.equal(known.fresh(), undefined)
  known.answered(at('1'), 9_900)
  assert.deepEqual(known.fresh(), at('1'))
  now.ms = 10_901
  assert.equal(known.fresh(), undefined)
})

test('nothing is shared while no stream would tell of a change', () => {
  const { now, known } = stage()
  known.answered(at('1'), 10_000)
  now.hears = false
  assert.equal(known.fresh(), undefined)
})

test('an answer that was asked for before the stream spoke does not take its word back', () => {
  const { now, known } = stage()
  known.told(at('2'))
  known.answered(at('1'), 9_999)
  assert.deepEqual(known.fresh(), at('2'))
  now.ms += 1
  known.answered(at('3'), 10_001)
  assert.deepEqual(known.fresh(), at('3'))
})

test('a clock that was set back makes nothing fresh', () => {
  const { now, known } = stage()
  known.told(at('1'))
  now.ms = 9_000
  assert.equal(known.fresh(), undefined)
})
