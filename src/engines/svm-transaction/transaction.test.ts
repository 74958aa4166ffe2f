import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '#kernel/clock.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Effect, TaskView } from '#kernel/task/task.ts'
import type { SvmPort } from './svm-port.ts'
import { createSvmTransactions } from './transaction.ts'
import { effectKind, type SvmPlan, type SvmTaskData } from './transaction-plan.ts'

const now = new Date('2030-01-01T00:00:00Z')
const plan: SvmPlan = {
  chainId: '999',
  account: 'wallet',
  operation: 'test',
  instructions: [],
  lookupTables: [],
  spends: [],
  tokens: [],
  recipients: [],
  usdMicros: 0n,
  exit: false,
}
const steps = { sign: 'sign', confirm: 'confirm' } as const
const signed = (status: Effect['status']) =>
  ({ id: 'e', kind: effectKind, step: 'sign', status, intent: { chainId: '999' } }) as unknown as Effect

/** What the step `sign` returns for a task with these effects. */
async function signStep({
  isFound = false,
  ...task
}: Partial<TaskView<SvmTaskData>> & { isFound?: boolean }) {
  const found = { signature: 'second', landed: {} }
  const port = {
    chain: { row: { id: '999', displayName: 'Solana' }, balance: async () => 0n },
    sponsor: { pick: async () => 'sponsor' },
    draft: async () => ({ ok: true, draft: { message: '', lastValidBlockHeight: 9n, slot: 1n } }),
    referenceOf: () => 'reference',
    findReferenced: async () => (isFound ? found : undefined),
  } as unknown as SvmPort
  const none = {} as never
  const transactions = createSvmTransactions({
    ports: new Map([['999', port]]),
    budget: none,
    policy: none,
    signer: none,
    nonces: { ensure: async () => undefined },
    assertFree: () => {},
    clock: { now: () => now } as Clock,
    random: systemRandom,
  })
  const driver = transactions.driver<SvmTaskData, string>({ prove: () => 'proof' })
  const view = {
    id: 'task',
    executionId: 'execution',
    userId: 'user',
    createdAt: now,
    deadline: new Date(now.getTime() + 60_000),
    effects: [],
    outcome: null,
    data: {},
    ...task,
  } as unknown as TaskView<SvmTaskData>
  const signal = new AbortController().signal
  const settle = async () => ({ next: 'sign' as const })
  return driver.sign(view, plan, { steps, now, signal, stopping: signal, settle })
}

test('a later signature that the database has forgotten is found before another one', async () => {
  const again = await signStep({ effects: [signed('dropped')], isFound: true })
  assert.ok(!('sign' in again) && 'park' in again && again.outcome === 'unknown', JSON.stringify(again))
  assert.ok('sign' in (await signStep({ effects: [signed('dropped')] })))
  assert.ok('sign' in (await signStep({})))
})

test('a task that may sign no more ends once nothing was found, and any other one signs again', async () => {
  const lookingUp = { outcome: 'unknown' as const }
  const [dropped, dead] = [signed('dropped'), { code: 'expired', outcome: 'not_executed' }]
  for (const late of [{ effects: [dropped, dropped, dropped] }, { effects: [dropped], deadline: now }]) {
    const ended = await signStep({ ...lookingUp, ...late })
    assert.ok('end' in ended && ended.end === 'failed')
    assert.deepEqual({ code: ended.error?.code, outcome: ended.outcome }, dead)
  }
  for (const effects of [[], [dropped]]) {
    const next = await signStep({ ...lookingUp, effects })
    assert.ok('next' in next && next.next === 'sign' && !('sign' in next))
  }
})
