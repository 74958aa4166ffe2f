import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attemptsMax, retryDelayMs } from './retry-schedule.ts'

test('the delays grow from seconds to a day, each with jitter below it, and end after eight attempts', () => {
  const delays = (fraction: number) =>
    Array.from({ length: attemptsMax }, (_, n) => retryDelayMs(n + 1, { fraction: () => fraction }))
  assert.deepEqual(
    delays(1).slice(0, -1),
    [5_000, 60_000, 300_000, 1_800_000, 7_200_000, 21_600_000, 86_400_000],
  )
  assert.deepEqual(delays(0).slice(0, 2), [4_000, 48_000])
  assert.equal(delays(1).at(-1), undefined)
  assert.equal(attemptsMax, 8)
})

test('an address that asks for a later attempt gets it, up to an hour and never an earlier one', () => {
  const random = { fraction: () => 1 }
  assert.equal(retryDelayMs(1, random, 30_000), 30_000)
  assert.equal(retryDelayMs(1, random, 1), 5_000)
  assert.equal(retryDelayMs(1, random, 86_400_000), 3_600_000)
  assert.equal(retryDelayMs(attemptsMax, random, 30_000), undefined)
})
