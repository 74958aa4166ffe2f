/** Requests that are repeated without their key: one of them passes, on any instance, until the caller wants it twice. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { runAct } from '#durable/accept/act-invoker.ts'
import {
  type Duplicates,
  recentRequestDeletion,
  recentRequestOf,
} from '#durable/accept/duplicate-requests.ts'
import { createLockWaiters } from '#durable/accept/lock-waiters.ts'
import type { UserCall } from '#durable/accept/operation-call.ts'
import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { deletionJobs } from '#durable/upkeep/retention.ts'
import { createKeyedMutex } from '#kernel/async/keyed-mutex.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { act, group, implement } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { TaskKind } from '#kernel/task/task.ts'
import { endUnexecuted } from '../harness/accept-task.ts'
import { testSpend } from '../harness/spend.ts'
import { type EngineFixture, newUser, openFixture } from './engine-fixture.ts'

const kind: TaskKind = { kind: 'test', version: 1, priority: 1, steps: {} }
const minutes = 60_000
const leaveNote = act('POST /test/notes', {
  summary: 'Leaves a note',
  description: 'Leaves a note.',
  access: 'trade',
  body: T.Object({ text: T.String() }),
  output: T.Object({ note: T.String() }),
})
const [note] = implement(group('test', 'Operations of a test.', { note: leaveNote }), {
  note: async ({ text }: { text: string }) => {
    if (text === 'refused') throw new Fault('conflict', 'The note is refused')
    return { note: newUser() }
  },
})

describe('requests that are repeated without their key', () => {
  let fixture: EngineFixture
  let now = new Date()
  const clock: Clock = { now: () => now }
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const transactions = () => {
    const { pool, transaction, pipelinedTransaction } = fixture.admin
    return { pool, run: transaction, pipelined: pipelinedTransaction }
  }
  function instance() {
    const intake = createTaskIntake({
      transactions: transactions(),
      clock,
      random,
      instanceId: newUser(),
    })
    return async (userId: string, duplicates: Duplicates = 'refuse', { hash = 'h', units = 0n } = {}) => {
      const account = { owner: userId, asset: 'test:coin', subAccount: 'wallet' }
      const spend = testSpend({ account, amountUnits: units })
      const { task } = await intake.accept({
        userId,
        kind,
        input: {},
        admission: { data: {}, first: 'first', ...(units > 0n && { spend }) },
        request: recentRequestOf(hash, duplicates, clock),
        leased: true,
      })
      return task.id
    }
  }
  const duplicateOf = (taskId: string) => (error: unknown) =>
    error instanceof Fault && error.code === 'possible_duplicate' && error.extras.task_id === taskId

  test('of twenty that arrive at once on two instances one is accepted', async () => {
    const [a, b] = [instance(), instance()]
    const user = newUser()
    const ends = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? a : b)(user)),
    )
    const accepted = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
    assert.equal(accepted.length, 1)
    for (const end of ends)
      if (end.status === 'rejected') assert.ok(duplicateOf(accepted[0]!)(end.reason), String(end.reason))
  })

  test('of two that arrive at once on two instances one is accepted, for each of many users', async () => {
    const [a, b] = [instance(), instance()]
    for (const user of Array.from({ length: 60 }, newUser)) {
      const ends = await Promise.allSettled([a(user), b(user)])
      assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1)
    }
  })

  test('another request, another user and a wanted repetition pass', async () => {
    const accept = instance()
    const user = newUser()
    const first = await accept(user)
    await accept(user, 'refuse', { hash: 'other' })
    await accept(newUser())
    await assert.rejects(accept(user), duplicateOf(first))
    const second = await accept(user, 'allow')
    await assert.rejects(accept(user), duplicateOf(second))
  })

  test('a task that executed nothing, and one of ten minutes ago, are repeated freely', async () => {
    const accept = instance()
    const user = newUser()
    const first = await accept(user)
    await endUnexecuted({ transactions: transactions(), clock }, first)
    const second = await accept(user)
    now = later(now, 9 * minutes)
    await assert.rejects(accept(user), duplicateOf(second))
    now = later(now, 2 * minutes)
    await accept(user)
  })

  test('a request that is refused for another reason is none to repeat', async () => {
    const accept = instance()
    const user = newUser()
    await assert.rejects(accept(user, 'refuse', { units: 5n }), { code: 'insufficient_balance' })
    await accept(user)
  })

  function actor() {
    const deps = {
      transactions: transactions(),
      clock,
      random,
      actTurns: createKeyedMutex(),
      acknowledgeAct: () => {},
      lockWaiters: createLockWaiters(),
    }
    return (userId: string, options: { duplicates?: Duplicates; key?: string } = {}, text = 'once') =>
      runAct(deps, {
        operation: note,
        input: { text },
        caller: { userId, agentId: userId, scheme: 'keypair', scopes: new Set() },
        options: { wait: false, timeoutMs: 1_000, duplicates: 'refuse', ...options },
        request: { id: 'r', address: '127.0.0.1', signal: new AbortController().signal },
      } as unknown as UserCall<'act'>)
  }
  const repeatOf = (key: string | undefined) => (error: unknown) =>
    error instanceof Fault && error.code === 'possible_duplicate' && error.extras.idempotency_key === key

  test('of acts without a task that arrive at once on two instances one is done, and its key has the answer', async () => {
    const [a, b] = [actor(), actor()]
    const user = newUser()
    const ends = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? a : b)(user, index % 3 === 0 ? { key: `key-${index}` } : {}),
      ),
    )
    const done = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
    assert.equal(done.length, 1)
    const [{ key, body }] = done as [(typeof done)[0]]
    for (const end of ends)
      if (end.status === 'rejected') assert.ok(repeatOf(key)(end.reason), String(end.reason))
    const replay = await b(user, { key: key! })
    assert.deepEqual([replay.replayed, replay.body], [true, body])
  })

  test('an act passes with other input, of another user, when it is wanted, and after a refusal', async () => {
    const run = actor()
    const user = newUser()
    const { key } = await run(user)
    await assert.rejects(run(user), repeatOf(key))
    await run(user, {}, 'other')
    await run(newUser())
    const again = await run(user, { duplicates: 'allow' })
    await assert.rejects(run(user), repeatOf(again.key))
    for (let times = 0; times < 2; times++)
      await assert.rejects(run(user, {}, 'refused'), { code: 'conflict' })
    now = later(now, 11 * minutes)
    await run(user)
  })

  test('old requests are deleted', async () => {
    await instance()(newUser())
    now = later(now, 30 * minutes)
    const [job] = deletionJobs({ pool: fixture.admin.pool, clock }, [recentRequestDeletion])
    await job?.runBatch()
    assert.deepEqual(await fixture.rows('select 1 from recent_request'), [])
  })
})
