import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLearnedLimit } from './learned-limit.ts'

test('a limit falls with refusals, never below one, and doubles after each pause up to its maximum', () => {
  let ms = 0
  const limit = createLearnedLimit({ max: 50, growAfterMs: 100, nowMs: () => ms })
  assert.equal(limit.value(), 50)
  limit.lower(12)
  limit.lower(25)
  assert.equal(limit.value(), 12)
  limit.lower(0)
  assert.equal(limit.value(), 1)
  limit.lower(1)
  ms = 99
  assert.equal(limit.value(), 1)
  for (const [atMs, expected] of [
    [100, 2],
    [199, 2],
    [200, 4],
    [900, 8],
    [1_000, 16],
    [1_100, 32],
    [1_200, 50],
    [9_000, 50],
  ] as const) {
    ms = atMs
    assert.equal(limit.value(), expected)
  }
})
