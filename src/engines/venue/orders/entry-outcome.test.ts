import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskView } from '#kernel/task/task.ts'
import { deriveCloid, effectKind } from './action-outcome.ts'
import { exitsOfReply, landedMs, resolveExits } from './entry-outcome.ts'
import type { OrderTaskData } from './order-task.ts'

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

const now = new Date(0)
const task: TaskView<OrderTaskData> = {
  id: 't',
  executionId: 't',
  userId: 'u',
  kind: 'perp_tp_sl',
  data: { account: '0xacc', since_ms: 0 } as OrderTaskData,
  input: {},
  attempt: 1,
  version: 1,
  effects: [
    {
      id: 'e',
      step: 'begin',
      kind: effectKind,
      externalId: deriveCloid('t', 'exits'),
      intent: { nonce: '9000' },
      signed: {},
      status: 'prepared',
      validUntil: null,
      at: now,
      txAttempts: [],
    },
  ],
  createdAt: now,
  deadline: now,
}

test('orders did not land before the nonce of their action, whatever time a lagging server reports', async () => {
  const at = (timeMs: number, foundAtMs?: number) =>
    landedMs({ timeMs: async () => timeMs }, task, 'exits', foundAtMs)
  assert.deepEqual([await at(3_000), await at(12_000), await at(3_000, 11_000)], [9_000, 12_000, 11_000])
})

test('an exit that a record contained once is not missing because later records lack it', async () => {
  const venue = { order: async () => undefined, openOrders: async () => [], fillsSince: async () => [] }
  const exit = { leg: 'sl', state: 'unknown', error: null } as const
  const statesOf = async (orderId: number | null) => {
    const scope = { entryRests: false, allRecords: true, isSettled: true }
    const [resolved] = await resolveExits(venue, task, { exits: [{ ...exit, orderId }], ...scope })
    return resolved?.state
  }
  assert.deepEqual([await statesOf(null), await statesOf(7)], ['missing', 'unknown'])
})
