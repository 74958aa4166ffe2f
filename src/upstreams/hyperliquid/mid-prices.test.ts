import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVenuePrices } from './mid-prices.ts'

const at = (price: string) => new Map([['BTC', price]])

function createTestPrices() {
  const now = { ms: 10_000, isStreaming: true }
  return { now, known: createVenuePrices({ nowMs: () => now.ms, isStreaming: () => now.isStreaming }) }
}

test('an answer is shared briefly, from the time of the request', () => {
  const { now, known } = createTestPrices()
  assert.equal(known.current(), undefined)
  known.answered(at('1'), 9_900)
  assert.deepEqual(known.current(), at('1'))
  now.ms = 10_901
  assert.equal(known.current(), undefined)
})

test('no answer is shared while no stream would send a change', () => {
  const { now, known } = createTestPrices()
  known.answered(at('1'), 10_000)
  now.isStreaming = false
  assert.equal(known.current(), undefined)
})

test('an answer requested before a stream message does not override it', () => {
  const { now, known } = createTestPrices()
  known.push(at('2'))
  known.answered(at('1'), 9_999)
  assert.deepEqual(known.current(), at('2'))
  now.ms += 1
  known.answered(at('3'), 10_001)
  assert.deepEqual(known.current(), at('3'))
})

test('after the clock was set back no answer is fresh', () => {
  const { now, known } = createTestPrices()
  known.push(at('1'))
  now.ms = 9_000
  assert.equal(known.current(), undefined)
})
