import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pollAgain, pollSilent, pollsOf } from './poll-again.ts'

const backoff = { firstMs: 300, maxMs: 1_000 }

test('each poll of a task waits longer, counted in its data', () => {
  const results = [{}, { polls: 1 }, { polls: 2 }, { polls: 900 }].map((data) =>
    pollAgain({ data }, 'confirm', backoff),
  )
  assert.deepEqual(
    results.map(({ park }) => park),
    [300, 600, 1_000, 1_000].map((afterMs) => ({ afterMs, next: 'confirm' })),
  )
  assert.deepEqual(
    results.map(({ data }) => pollsOf({ data })),
    [1, 2, 3, 901],
  )
})

test('an operator looks into a task that has had no answer for an hour, and it is polled ever more rarely', () => {
  const hourMs = 3_600_000
  const states = [0, hourMs, hourMs + 1, 10 * hourMs].map((ageMs) =>
    pollSilent({ data: {} }, 'confirm', { ageMs, backoff }),
  )
  assert.deepEqual(
    states.map(({ state, park }) => [state, park.afterMs]),
    [
      ['reconciling', 300],
      ['reconciling', 300],
      ['review', 60_000],
      ['review', 600_000],
    ],
  )
})

test('the count of polls begins again where the task set it to 0', () => {
  assert.deepEqual(
    pollAgain({ data: { polls: 0 } }, 'next', backoff),
    pollAgain({ data: {} }, 'next', backoff),
  )
})
