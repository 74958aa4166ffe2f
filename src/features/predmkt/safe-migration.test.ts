import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { StepContext } from '#kernel/task/task.ts'
import type { PredmktDeps } from './deps.ts'
import { migrationEffect } from './safe-migration.ts'
import { partialOnceMoved, type SetupTask } from './setup-task.ts'

const wallet = { kind: 'deposit_wallet', owner: '0x1', wallet: '0x2' }
const taskOf = (movedBlock?: string) =>
  ({ kind: 'predmkt_setup_v2', data: { wallet, moved_block: movedBlock } }) as unknown as SetupTask
/** A Safe of which a node shows the state of block 5, in which it is empty. */
const deps = {
  venue: {
    walletsOf: () => [{ kind: 'safe', owner: '0x1', wallet: '0x3' }],
    money: { cashToken: '0x4', wrappable: [] },
    positions: async () => ({ items: [], nextCursor: null }),
  },
  chain: {
    code: async () => '0x01',
    balances: async () => ({ head: { number: 5n }, nativeUnits: 0n, tokens: [0n] }),
  },
} as unknown as PredmktDeps

test('the next move is planned only by a node that shows the one before', async () => {
  const { sign } = migrationEffect(deps)
  const context = { now: new Date(0) } as StepContext
  await assert.rejects(sign(taskOf('6'), context), (fault) => fault instanceof Fault && fault.retryable)
  for (const shown of [undefined, '5'])
    assert.deepEqual(await sign(taskOf(shown), context), {
      next: 'check',
      data: { is_moved: true, left: [] },
    })
})

test('a set-up that fails after it has moved something is partial', () => {
  const failed = { end: 'failed', outcome: 'not_executed' } as const
  assert.equal(partialOnceMoved(taskOf('5'), failed).outcome, 'partial')
  assert.equal(partialOnceMoved(taskOf(), failed).outcome, 'not_executed')
})
