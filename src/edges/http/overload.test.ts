import assert from 'node:assert/strict'
import { test } from 'node:test'
import { moneyPatience, shedding } from './overload.ts'

test('one saturated second sheds reads, a lasting load sheds money, and nothing sheds a way out', () => {
  const load = shedding(0.9)
  const shed = () =>
    (['auth', 'read', 'stream', 'money', 'exit'] as const).filter((rate) => load.refusal(rate) !== undefined)
  load.observe(0.9)
  assert.deepEqual(shed(), [])
  for (let second = 1; second < moneyPatience; second++) {
    load.observe(0.95)
    assert.deepEqual(shed(), ['auth', 'read', 'stream'])
  }
  load.observe(0.95)
  assert.deepEqual(shed(), ['auth', 'read', 'stream', 'money'])
  load.observe(0.5)
  assert.deepEqual(shed(), [])
})
