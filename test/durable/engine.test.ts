import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { group, implement, type Operation, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { externalAccount, type TaskKind } from '#kernel/task/task.ts'
import { type TestDatabase, testDatabase } from '../harness/cluster.ts'
import { openTestCore } from '../harness/core.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { testSpend } from '../harness/spend.ts'

const asset = 'test:coin'
const coin = { symbol: 'COIN', decimals: 2, address: 'coin' }
const request = { id: 'r', address: '127.0.0.1', signal: new AbortController().signal }
const callerOf = (userId: string): Caller => ({
  userId,
  agentId: 'agt',
  scheme: 'keypair',
  scopes: new Set(['trade']),
})
const newUser = () => uuidv7(new Date(), systemRandom)

/** Calls to the outside, recorded by the step that plays the venue. */
type Seen = { taskId: string; instance: string }

/** Ends the admissions of `late` requests. */
const lateAdmission = Promise.withResolvers<void>()

async function instance(databaseUrl: string, seen: Seen[], name: string) {
  const core = await openTestCore({ databaseUrl, env: { RUNNER_SLOTS: '32', LEASE_MS: '1000' } })
  const { taskEngine } = core
  const contract = group('test', 'Operations of a test.', {
    spend: task('POST /test/spend', {
      summary: 'Spend coins',
      access: 'trade',
      waitSeconds: 60,
      body: T.Object({ amount: T.Integer(), how: T.Optional(T.String()) }),
      output: TaskResponse,
    }),
  })
  const operations = implement(contract, {
    spend: {
      admit: async ({ amount, how }, { userId }) => {
        if (how === 'refuse') throw new Fault('market_closed', 'closed')
        if (how === 'late') await lateAdmission.promise
        const account = { owner: userId, asset, subAccount: 'wallet' }
        return {
          data: { how: how ?? null },
          first: 'check',
          spend: testSpend({ account, amountUnits: BigInt(amount), token: coin }),
        }
      },
      steps: {
        check: async ({ data }) => ({ next: 'send', data: { checked: true, how: data.how ?? null } }),
        send: async ({ id, data, attempt }) => {
          if (data.how === 'flaky' && attempt < 2) throw new Fault('unavailable', 'the venue is away')
          if (data.how === 'bug') throw new TypeError('oops')
          if (data.how === 'slow') return { park: { afterMs: 300, next: 'finish' } }
          if (data.how === 'forever') return { park: { afterMs: 60_000, next: 'finish' } }
          seen.push({ taskId: id, instance: name })
          return { next: 'finish', data: { sent: true } }
        },
        finish: async ({ data, input }) =>
          data.how === 'reject'
            ? { end: 'failed', outcome: 'not_executed', error: { code: 'venue_rejected', message: 'no' } }
            : {
                end: 'completed',
                outcome: 'executed',
                result: { ok: true },
                spent: BigInt(Number(input.amount)),
              },
      },
    },
  })
  const runtime = taskEngine.createRuntime(operations, [] as TaskKind[])
  runtime.start()
  const spend = operations[0] as Operation
  return {
    core,
    taskEngine,
    runtime,
    spend: (
      userId: string,
      body: Record<string, unknown>,
      options: { key?: string; wait?: boolean; timeoutMs?: number } = {},
    ) =>
      runtime.invoke({
        operation: spend,
        input: body,
        caller: callerOf(userId),
        options: { wait: true, timeoutMs: 10_000, ...options },
        request,
      }) as Promise<{
        kind: 'answer'
        replayed: boolean
        body: {
          task_id: string
          status: string
          outcome: string
          state: string
          error: { code: string } | null
        }
      }>,
  }
}

describe('durable tasks', () => {
  let db: TestDatabase
  const seen: Seen[] = []
  let a: Awaited<ReturnType<typeof instance>>
  let b: Awaited<ReturnType<typeof instance>>

  const fund = async (userId: string, units: bigint) =>
    a.core.transactions.run((tx) =>
      a.taskEngine.ledger.apply(
        tx,
        [
          {
            move: 'transfer',
            key: `fund:${userId}`,
            debit: externalAccount(asset),
            credit: { owner: userId, asset, subAccount: 'wallet' },
            amountUnits: units,
            reason: 'fund',
          },
        ],
        { taskId: null, now: new Date() },
      ),
    )
  const balance = (userId: string) =>
    a.taskEngine.ledger.balance(a.core.db, { owner: userId, asset, subAccount: 'wallet' })

  before(async () => {
    db = await testDatabase()
    a = await instance(db.url, seen, 'a')
    b = await instance(db.url, seen, 'b')
  })
  after(async () => {
    await a.core[Symbol.asyncDispose]()
    await b.core[Symbol.asyncDispose]()
    await db.drop()
  })

  test('a task runs its steps, settles its hold and has one event per change, in order', async () => {
    const user = newUser()
    await fund(user, 100n)
    const { body } = await a.spend(user, { amount: 40 })
    assert.equal(body.status, 'completed')
    assert.equal(body.outcome, 'executed')
    assert.deepEqual(await balance(user).then(({ availUnits, heldUnits }) => [availUnits, heldUnits]), [
      60n,
      0n,
    ])
    const { events } = await a.taskEngine.events.page(user, 0n, { limit: 50 })
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, n) => String(n + 1)),
    )
    const rest = await a.taskEngine.events.page(user, 1n, { limit: 50 })
    assert.deepEqual(rest.events, events.slice(1), 'a subscription after the first event does not repeat it')
    assert.equal(events[0]?.type, 'task.created')
    assert.equal(events.at(-1)?.type, 'task.completed')
  })

  test('a wait ends at its timeout while the admission takes longer, and nothing is accepted then or later', async () => {
    const user = newUser()
    await fund(user, 100n)
    await assert.rejects(a.spend(user, { amount: 40, how: 'late' }, { key: 'late', timeoutMs: 50 }), {
      code: 'unavailable',
      retryable: true,
    })
    lateAdmission.resolve()
    // A task that the late admission made would hold its amount by now: the next one is admitted after it.
    const { body } = await a.spend(user, { amount: 60, how: 'late' }, { key: 'next' })
    assert.equal(body.status, 'completed')
    assert.equal((await balance(user)).availUnits, 40n)
    const { replayed } = await a.spend(user, { amount: 40, how: 'late' }, { key: 'late' })
    assert.equal(replayed, false)
  })

  test('a selective filter searches a bounded part of a long log', async () => {
    const user = newUser()
    const many = Array.from({ length: 20_500 }, () => ({ type: 'test.many', subject: null, data: {} }))
    const rare = { type: 'test.rare', subject: null, data: {} }
    await a.core.transactions.run((tx) => a.taskEngine.events.add(tx, user, [...many, rare] as never))
    const types = ['test.rare']
    const early = await a.taskEngine.events.page(user, 0n, { limit: 10 }, { types })
    assert.deepEqual(early, { events: [], total: 0, nextAfter: 20_000n })
    const late = await a.taskEngine.events.page(user, early.nextAfter, { limit: 10 }, { types })
    assert.deepEqual([late.events.map(({ id }) => id), late.total, late.nextAfter], [['20501'], 1, 20_501n])
    const whole = await a.taskEngine.events.page(user, 0n, { limit: 10, skip: 5 })
    assert.deepEqual([whole.events[0]?.id, whole.total, whole.nextAfter], ['6', 20_501, 15n])
    const ending = new AbortController()
    for await (const [event] of a.taskEngine.events.subscribe(user, 0n, { types, signal: ending.signal })) {
      assert.equal(event?.id, '20501')
      ending.abort()
    }
  })

  test('one key sent 50 times at once over two instances is one task and one payment', async () => {
    const user = newUser()
    await fund(user, 10n)
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, n) => (n % 2 ? a : b).spend(user, { amount: 10 }, { key: 'k' })),
    )
    assert.equal(new Set(replies.map(({ body }) => body.task_id)).size, 1)
    assert.equal(replies.filter(({ replayed }) => !replayed).length, 1)
    assert.ok(replies.every(({ body }) => body.status === 'completed'))
    assert.equal(seen.filter(({ taskId }) => taskId === replies[0]!.body.task_id).length, 1)
    await assert.rejects(a.spend(user, { amount: 9 }, { key: 'k' }), { code: 'idempotency_conflict' })
  })

  test('of 60 racing spends only as many are accepted as the balance covers', async () => {
    const user = newUser()
    await fund(user, 10n)
    const replies = await Promise.allSettled(
      Array.from({ length: 60 }, (_, n) => (n % 2 ? a : b).spend(user, { amount: 1 })),
    )
    assert.equal(replies.filter((reply) => reply.status === 'fulfilled').length, 10)
    for (const reply of replies)
      if (reply.status === 'rejected') {
        const { code, message, extras } = reply.reason as Fault
        const { available } = extras
        assert.deepEqual(
          [code, message],
          ['insufficient_balance', `The request needs 0.01 COIN, but only ${available} COIN is available`],
        )
        assert.deepEqual(extras, { symbol: 'COIN', token: 'coin', decimals: 2, required: '0.01', available })
      }
    assert.deepEqual(await balance(user).then(({ availUnits, heldUnits }) => [availUnits, heldUnits]), [
      0n,
      0n,
    ])
  })

  test('a rejected admission leaves no task behind', async () => {
    const user = newUser()
    await assert.rejects(a.spend(user, { amount: 1, how: 'refuse' }), { code: 'market_closed' })
    assert.equal((await a.taskEngine.tasks.list(user, { skip: 0, limit: 10 })).total, 0)
  })

  test('a rejection by the venue releases the hold', async () => {
    const user = newUser()
    await fund(user, 5n)
    const { body } = await a.spend(user, { amount: 5, how: 'reject' })
    assert.deepEqual([body.status, body.outcome, body.state], ['failed', 'not_executed', 'venue_rejected'])
    assert.deepEqual(await balance(user).then(({ availUnits, heldUnits }) => [availUnits, heldUnits]), [
      5n,
      0n,
    ])
  })

  test('a transient failure is retried, and a bug ends the task as failed', async () => {
    const user = newUser()
    await fund(user, 5n)
    const flaky = await a.spend(user, { amount: 1, how: 'flaky' })
    assert.equal(flaky.body.status, 'completed')
  })

  test('a parked task continues when it is due', async () => {
    const user = newUser()
    await fund(user, 5n)
    assert.equal((await a.spend(user, { amount: 1, how: 'slow' })).body.status, 'completed')
  })

  test('a wait that times out returns the current task, and a cancel then ends it', async () => {
    const user = newUser()
    await fund(user, 5n)
    const { body } = await a.spend(user, { amount: 5, how: 'forever' }, { timeoutMs: 400 })
    assert.equal(body.status, 'running')
    await b.taskEngine.tasks.cancel(user, body.task_id)
    const deadline = Date.now() + 30_000
    while ((await a.taskEngine.tasks.find(user, body.task_id)).status !== 'cancelled') {
      assert.ok(Date.now() < deadline, 'the cancel took too long')
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.deepEqual(await balance(user).then(({ availUnits }) => availUnits), 5n)
    await assert.rejects(a.taskEngine.tasks.cancel(newUser(), body.task_id), { code: 'not_found' })
  })

  test('the ledger sums to zero, and every account equals its transfers', async () => {
    assert.equal(await ledgerDrift(a.core.db), 0)
  })
})
