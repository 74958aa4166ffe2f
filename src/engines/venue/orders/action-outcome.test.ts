import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Effect, TaskView } from '#kernel/task/task.ts'
import { type ActionOutcome, deriveCloid, effectIdOf, effectKind, retryThrottled } from './action-outcome.ts'

const now = new Date(1_700_000_000_000)
const later = (ms: number) => new Date(now.getTime() + ms)
const retry = { actionKey: 'entry', next: 'order', now }
const throttled = 'Too many cumulative requests sent (10001 > 10000) for cumulative volume traded $0.'
const rejected = (message: string): ActionOutcome<never> => ({
  type: 'rejected',
  message,
  effects: [{ effectId: 'e', status: 'rejected' }],
})

const effect = (externalId: string, { exit }: { exit: boolean }): Effect => ({
  id: 'e',
  step: 'begin',
  kind: effectKind,
  externalId,
  intent: { exit },
  signed: {},
  status: 'sent',
  validUntil: null,
  at: now,
  txAttempts: [],
})
type TaskFacts = { exit: boolean; data?: TaskView['data']; deadline?: Date }
const task = ({ exit, data = {}, deadline = later(60_000) }: TaskFacts): TaskView => {
  const view: TaskView = {
    id: 't',
    executionId: 't',
    userId: 'u',
    kind: 'perp_close',
    data,
    input: {},
    attempt: 1,
    version: 1,
    effects: [],
    createdAt: now,
    deadline,
  }
  return { ...view, effects: [effect(effectIdOf(view, 'entry'), { exit })] }
}

test('an exit that the venue rate-limits is signed again after ten seconds', () => {
  const first = retryThrottled(task({ exit: true }), rejected(throttled), retry)
  assert.ok(first && 'park' in first)
  assert.deepEqual(first.park, { afterMs: 10_000, next: 'order' })
  assert.deepEqual(first.effects, [{ effectId: 'e', status: 'rejected' }])
  assert.equal(first.data?.throttled.entry, 1)
  const second = retryThrottled(
    task({ exit: true, data: { throttled: { entry: 1 } } }),
    rejected(throttled),
    retry,
  )
  assert.equal(second?.data?.throttled.entry, 2)
})

test('an opening order, another rejection, and a deadline before the next request are not retried', () => {
  assert.equal(retryThrottled(task({ exit: false }), rejected(throttled), retry), undefined)
  assert.equal(
    retryThrottled(task({ exit: true }), rejected('Insufficient margin to place order.'), retry),
    undefined,
  )
  assert.equal(
    retryThrottled(task({ exit: true, deadline: later(9_999) }), rejected(throttled), retry),
    undefined,
  )
  assert.equal(retryThrottled(task({ exit: true }), { type: 'unknown', effects: [] }, retry), undefined)
})

test('each signature of an action is an effect with its own id', () => {
  const ids = [{}, { throttled: { entry: 1 } }, { throttled: { entry: 2 } }].map((data) =>
    effectIdOf(task({ exit: true, data }), 'entry'),
  )
  assert.equal(ids[0], deriveCloid('t', 'entry'))
  assert.equal(new Set(ids).size, 3)
  assert.equal(
    effectIdOf(task({ exit: true, data: { throttled: { entry: 1 } } }), 'tp'),
    deriveCloid('t', 'tp'),
  )
})
