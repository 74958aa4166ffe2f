import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookUpAgain } from './forgotten-execution.ts'
import type { TaskView } from './task.ts'

const now = new Date('2030-01-01T00:00:00Z')
const lookUp = (hours: number, outcome: 'unknown' | null, state: 'confirming' | 'reconciling' | 'review') => {
  const createdAt = new Date(now.getTime() - hours * 3_600_000)
  const task = { createdAt, outcome, effects: [], data: {} } as unknown as TaskView<object>
  const parked = lookUpAgain(
    { task, context: { now, steps: { sign: 'sign' } } },
    { state, note: 'no answer' },
  )
  assert.ok('park' in parked && parked.outcome === 'unknown')
  return [parked.state, parked.park.afterMs]
}

test('a look-up that gets no answer is repeated ever more rarely, and its task waits for an operator after an hour', () => {
  assert.deepEqual(lookUp(0, 'unknown', 'reconciling'), ['reconciling', 1_000])
  assert.deepEqual(lookUp(2, 'unknown', 'reconciling'), ['review', 120_000])
  assert.deepEqual(lookUp(2, 'unknown', 'review'), ['review', 120_000])
})

test('a task that is marked only now, or whose transaction is not final yet, is looked at again at once', () => {
  assert.deepEqual(lookUp(2, null, 'reconciling'), ['reconciling', 1_000])
  assert.deepEqual(lookUp(2, 'unknown', 'confirming'), ['confirming', 1_000])
})
