import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Effect, TaskView } from '#kernel/task/task.ts'
import { confirmTransaction } from './confirm.ts'
import type { SvmPort } from './svm-port.ts'
import { effectKind, type SvmTaskData } from './transaction-plan.ts'

const now = new Date('2030-01-01T00:00:00Z')
const effect = {
  id: 'e',
  kind: effectKind,
  step: 'sign',
  status: 'sent',
  at: now,
  intent: { chainId: '999', lastValidBlockHeight: '1000', account: 'w', spends: [] },
  signed: { slot: '2000', held: [] },
  txAttempts: [{ externalId: 's', raw: '', status: 'sent' }],
} as unknown as Effect
const stopped = AbortSignal.abort()

/** The confirmation of a signature that can never land. */
async function confirmDead(task: Partial<TaskView<SvmTaskData>>) {
  const reading = { slot: 2_240n, status: undefined }
  const port = {
    watcher: { forget: () => {}, watch: () => ({ next: async () => reading, [Symbol.dispose]: () => {} }) },
    chain: {
      row: { id: '999', displayName: 'Solana', explorerUrl: 'x', native: { address: 'coin' } },
      height: async () => ({ height: 1_100n, slot: 2_200n }),
      statuses: async () => ({ slot: 2_250n, statuses: [undefined] }),
      transaction: async () => undefined,
    },
  } as unknown as SvmPort
  const never = async () => assert.fail('nothing is settled')
  const deps = { portOf: () => port, budget: { settle: never }, policy: { release: never } }
  const view = {
    id: 'task',
    executionId: 'task',
    userId: 'user',
    createdAt: now,
    deadline: new Date(now.getTime() + 60_000),
    effects: [effect],
    outcome: null,
    data: { absence: { signature: 's', slot: '2240', at_ms: now.getTime() - 3_000 } },
    ...task,
  } as unknown as TaskView<SvmTaskData>
  const result = await confirmTransaction(
    deps as never,
    { task: view, settle: never, prove: () => 'proof' },
    { now, signal: stopped, stopping: stopped, steps: { sign: 'sign', confirm: 'confirm' } },
  )
  assert.deepEqual(result.effects?.[0]?.status, 'dropped')
  return result
}

test('a dead signature of an execution that the database may have forgotten is looked up before it ends', async () => {
  const dropped = { ...effect, id: 'earlier', status: 'dropped' } as Effect
  for (const more of [{}, { deadline: now }, { effects: [dropped, dropped, effect] }]) {
    const looked = await confirmDead({ executionId: 'execution', ...more })
    assert.ok('park' in looked && looked.park.next === 'sign', JSON.stringify(more))
    assert.deepEqual([looked.state, looked.outcome], ['reconciling', 'unknown'])
    const own = await confirmDead(more)
    assert.deepEqual(
      'end' in own ? own.outcome : own.state,
      'deadline' in more || 'effects' in more ? 'not_executed' : 'held',
    )
  }
})
