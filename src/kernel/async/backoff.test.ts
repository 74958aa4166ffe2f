import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backoffMs, withJitter } from './backoff.ts'

test('a delay doubles from the first to the longest, and stays there however many attempts failed', () => {
  const delays = [0, 1, 2, 5, 6, 10_000].map((earlier) => backoffMs({ firstMs: 500, maxMs: 30_000 }, earlier))
  assert.deepEqual(delays, [500, 1_000, 2_000, 16_000, 30_000, 30_000])
  assert.equal(backoffMs({ firstMs: 1, maxMs: Number.POSITIVE_INFINITY }, 10_000), 2 ** 30)
})

test('jitter takes half of the delay by default, and never makes it longer', () => {
  const at = (fraction: number, share?: number) => withJitter(1_000, { fraction: () => fraction }, share)
  assert.deepEqual([at(0), at(0.5), at(1)], [500, 750, 1_000])
  assert.deepEqual([at(0, 1), at(0.25, 1), at(1, 1)], [0, 250, 1_000])
  assert.deepEqual([at(0, 0), at(1, 0)], [1_000, 1_000])
})
