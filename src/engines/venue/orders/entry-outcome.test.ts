import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitsOfReply } from './entry-outcome.ts'

test('the reply to a bracket states for each exit whether it waits for the entry or is open', () => {
  const states = (...legs: Parameters<typeof exitsOfReply>[1]) =>
    exitsOfReply(['tp', 'sl'], legs).map(({ leg, orderId, state }) => [leg, orderId, state])
  assert.deepEqual(
    states({ type: 'accepted', as: 'waitingForFill' }, { type: 'accepted', as: 'waitingForTrigger' }),
    [
      ['tp', null, 'waiting'],
      ['sl', null, 'open'],
    ],
  )
  assert.deepEqual(
    states({ type: 'resting', orderId: 7 }, { type: 'error', message: 'Invalid TP/SL price' }),
    [
      ['tp', 7, 'open'],
      ['sl', null, 'missing'],
    ],
  )
  assert.deepEqual(states({ type: 'filled', orderId: 8, size: '1', price: '2' }), [
    ['tp', 8, 'closed'],
    ['sl', null, 'unknown'],
  ])
})
