import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LimitOrderRow, limitOrderEvent } from './view.ts'

const at = new Date(1_000_000)
const eventOf = (changes: Partial<LimitOrderRow>) => {
  const row = {
    id: 'o',
    status: 'armed',
    input: {},
    attempts: 0,
    task_id: null,
    task_status: null,
    task_result: null,
    task_error: null,
    priced_at: at,
    expires_at: null,
    created_at: at,
    updated_at: at,
    ...changes,
  } as LimitOrderRow
  const { type, data } = limitOrderEvent(row)
  return [type, (data as { status: string }).status]
}

test('the type of an event agrees with the status of the order', () => {
  const failed = { task_status: 'failed', task_error: { code: 'no_route' } }
  assert.deepEqual(eventOf({}), ['limit_order.created', 'active'])
  assert.deepEqual(eventOf({ status: 'fired' }), ['limit_order.triggered', 'executing'])
  assert.deepEqual(eventOf({ ...failed, status: 'armed' }), ['limit_order.attempt_failed', 'active'])
  assert.deepEqual(eventOf({ ...failed, status: 'fired' }), ['limit_order.failed', 'failed'])
  assert.deepEqual(eventOf({ status: 'fired', task_status: 'completed' }), [
    'limit_order.executed',
    'executed',
  ])
})
