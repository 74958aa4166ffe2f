import assert from 'node:assert/strict'
import { test } from 'node:test'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import type { FailedResult } from '#kernel/task/task.ts'
import { type CancelTaskData, cancelLists, withCancelLists } from './cancel-end.ts'

const data = (change: Partial<CancelTaskData> = {}): CancelTaskData => ({
  owner: '0x1',
  order_ids: ['order-1', 'order-2'],
  exit_ids: ['exit-1', 'exit-2'],
  market_id: null,
  outcome_id: null,
  ...change,
})
const expired = notExecuted({ code: 'expired', message: 'Too late', retryable: false })

test('a cancel that has done nothing is not executed', () => {
  assert.equal(withCancelLists(expired, data()), expired)
  assert.equal(withCancelLists(expired, data({ ended_exits: [], exit_orders: [], is_sent: false })), expired)
})

test('a cancel that has ended an exit, or may have sent a request, ends as partial with its lists', () => {
  const ended: FailedResult = withCancelLists(
    expired,
    data({ ended_exits: ['exit-1'], exit_orders: ['order-3'] }),
  )
  assert.deepEqual(
    [ended.outcome, ended.error, ended.result],
    [
      'partial',
      expired.error,
      {
        canceled: ['exit-1'],
        not_canceled: {
          'order-1': 'The venue was not asked',
          'order-2': 'The venue was not asked',
          'order-3': 'The venue was not asked',
          'exit-2': 'The exit has ended',
        },
      },
    ],
  )
  assert.equal(withCancelLists(expired, data({ exit_orders: ['order-3'] })).outcome, 'partial')
  assert.equal(withCancelLists(expired, data({ is_sent: true })).outcome, 'partial')
})

test('what the venue has answered stands beside what it has not', () => {
  const lists = cancelLists(
    data({
      is_sent: true,
      canceled: ['order-1'],
      exit_orders: ['order-3'],
      not_canceled: { 'order-3': 'matched' },
    }),
  )
  assert.deepEqual(lists.canceled, ['order-1'])
  assert.deepEqual(lists.not_canceled, {
    'order-2': 'It is not known whether the venue has cancelled it',
    'order-3': 'matched',
    'exit-1': 'The exit has ended',
    'exit-2': 'The exit has ended',
  })
})
