import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWindowCounter } from './window-counter.ts'

function counterFixture({ keysMax = 10 } = {}) {
  const clock = { ms: 1_000 }
  return { clock, counter: createWindowCounter({ keysMax, nowMs: () => clock.ms }) }
}

test('a window begins with its first count and ends after its time', () => {
  const { clock, counter } = counterFixture()
  assert.equal(counter.count('a'), 0)
  assert.deepEqual(counter.add('a', 100), { count: 1, endsAtMs: 1_100 })
  clock.ms += 99
  assert.deepEqual(counter.add('a', 100), { count: 2, endsAtMs: 1_100 })
  assert.deepEqual([counter.count('a'), counter.count('b')], [2, 0])
  clock.ms += 1
  assert.equal(counter.count('a'), 0)
  assert.deepEqual(counter.add('a', 100), { count: 1, endsAtMs: 1_200 })
})

test('the key that was counted longest ago is forgotten beyond the limit', () => {
  const { counter } = counterFixture({ keysMax: 2 })
  for (const key of ['a', 'b', 'a', 'c']) counter.add(key, 100)
  assert.deepEqual(
    ['a', 'b', 'c'].map((key) => counter.count(key)),
    [2, 0, 1],
  )
})
