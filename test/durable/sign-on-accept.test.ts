import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Clock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { group, implement, type Operation, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import type { SignedEffect } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { type TestDatabase, testDatabase } from '../harness/cluster.ts'
import { openTestCore } from '../harness/core.ts'
import { eventually } from '../harness/gateway.ts'
import { type DatabaseProxy, databaseProxy } from '../proof/support/database-proxy.ts'

/** Tasks whose acceptance and first signature are one commit. */

const nonceSequence = { kind: 'test', chain: '1', signer: 'signer' }
const request = { id: 'r', address: '127.0.0.1', signal: new AbortController().signal }
const time = { offsetMs: 0 }
const clock: Clock = { now: () => new Date(Date.now() + time.offsetMs) }
const newUser = () => uuidv7(new Date(), systemRandom)
const callerOf = (userId: string): Caller => ({
  userId,
  agentId: 'agt',
  scheme: 'keypair',
  scopes: new Set(['trade']),
})
const contract = group('test', 'Operations of a test.', {
  sign: task('POST /test/sign', {
    summary: 'Signs at once',
    access: 'trade',
    waitSeconds: 60,
    body: T.Object({ stumbles: T.Boolean() }),
    output: TaskResponse,
  }),
})

type Lookup = { instance: string; neverSent: boolean }
type SignedTask = { task_id: string; status: string; outcome: string }

async function instance(databaseUrl: string, name: string, lookups: Map<string, Lookup[]>) {
  const core = await openTestCore({
    databaseUrl,
    env: { LEASE_MS: '1000' },
    overrides: { clock },
  })
  const { taskEngine } = core
  const built = (taskId: string, nonce: bigint): SignedEffect => ({
    effect: { kind: 'test', externalId: taskId, policyReceipt: 'none', intent: {}, signed: {} },
    txAttempt: { externalId: `${nonce}`, raw: `signed ${nonce}`, nonce },
  })
  const operations = implement(contract, {
    sign: {
      admit: async ({ stumbles }) => ({
        first: 'begin',
        data: { stumbles },
        signOnAccept: true,
      }),
      steps: {
        begin: async ({ id }) => ({
          sign: {
            nonceSequence,
            build: async () => async (nonce: bigint) => built(id, nonce),
            signOnAccept: async () => async (nonce: bigint) => built(id, nonce),
          },
          next: 'look',
        }),
        look: async ({ id, effects, data, attempt }) => {
          const neverSent = effects[0]?.neverSent === true
          lookups.set(id, [...(lookups.get(id) ?? []), { instance: name, neverSent }])
          if (data.stumbles && attempt === 0) throw new Fault('upstream_timeout', 'no reply')
          return {
            end: 'completed',
            outcome: 'executed',
            result: {},
            effects: [
              {
                effectId: effects[0]!.id,
                status: 'confirmed',
                attemptExternalId: effects[0]!.txAttempts[0]!.externalId,
              },
            ],
          }
        },
      },
    },
  })
  const runtime = taskEngine.createRuntime(operations, [])
  runtime.start()
  return {
    core,
    taskEngine,
    sign: async (userId: string, key?: string, stumbles = false): Promise<SignedTask> => {
      const options = { wait: true, timeoutMs: 15_000, ...(key !== undefined && { key }) }
      const reply = await runtime.invoke({
        operation: operations[0] as Operation,
        input: { stumbles },
        caller: callerOf(userId),
        options,
        request,
      })
      assert.equal(reply.kind, 'answer')
      return (reply as { body: unknown }).body as SignedTask
    },
  }
}

type Instance = Awaited<ReturnType<typeof instance>>

describe('an acceptance with its first signature', () => {
  const looks = new Map<string, Lookup[]>()
  let db: TestDatabase
  let proxy: DatabaseProxy
  let [a, b] = [] as unknown as [Instance, Instance]

  before(async () => {
    db = await testDatabase()
    proxy = await databaseProxy(db.url)
    a = await instance(proxy.url, 'a', looks)
    b = await instance(db.url, 'b', looks)
    await b.taskEngine.nonces.ensure(nonceSequence, 1n)
  })
  after(async () => {
    await a.core[Symbol.asyncDispose]()
    await b.core[Symbol.asyncDispose]()
    await proxy[Symbol.asyncDispose]()
    await db.drop()
  })

  const rows = (sql: string, ...values: unknown[]) => query<Record<string, unknown>>(b.core.db, sql, values)
  const effectsOf = async (userId: string) =>
    rows(
      `select t.id, c.nonce from task t join effect e on e.task_id = t.id join tx_attempt c on c.effect_id = e.id
       where t.user_id = $1 order by t.id`,
      userId,
    )

  test('only the step after it knows that the signed bytes were never sent', async () => {
    const user = newUser()
    const done = await b.sign(user, undefined, true)
    assert.equal(done.outcome, 'executed')
    assert.deepEqual(
      looks.get(done.task_id)?.map(({ neverSent }) => neverSent),
      [true, false],
    )
    const eventRows = await rows('select type from user_event where user_id = $1 order by seq', user)
    const types = eventRows.map(({ type }) => type)
    assert.deepEqual([types[0], types.at(-1)], ['task.created', 'task.completed'])
    assert.equal((await effectsOf(user)).length, 1)
  })

  test('one key at once on two instances is one task, one signature and one nonce', async () => {
    const user = newUser()
    const tasks = await Promise.all(
      Array.from({ length: 20 }, (_, turn) => (turn % 2 ? a : b).sign(user, 'one key')),
    )
    assert.equal(new Set(tasks.map(({ task_id }) => task_id)).size, 1)
    assert.equal((await effectsOf(user)).length, 1)
  })

  test('many tasks of one signer on two instances take distinct nonces', async () => {
    const user = newUser()
    const tasks = await Promise.all(Array.from({ length: 60 }, (_, turn) => (turn % 2 ? a : b).sign(user)))
    assert.ok(tasks.every(({ outcome }) => outcome === 'executed'))
    const numbers = (await effectsOf(user)).map(({ nonce }) => String(nonce))
    assert.equal(new Set(numbers).size, 60)
  })

  /** `count` accepting statements wait for that sort of lock. */
  const waiting = (lock: 'relation' | 'transactionid', count: number) =>
    eventually(async () => {
      const found = await rows(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and wait_event = $1
             and datname = current_database() and query like 'select * from task_accept%'`,
        lock,
      )
      return found.length >= count || undefined
    }, `${count} accepting statements that wait for a ${lock}`)

  for (const key of ['lost', undefined]) {
    test(`a repeat waits for the first request, whose reply is lost, ${key ? 'under its key' : 'under the key of its answer'}`, async () => {
      const user = newUser()
      await a.sign(user)
      // A batch gives up after a moment; what waits longer comes as a second message.
      proxy.dropReplyTo(`"user_id":"${user}"`, 2)
      let repeat: Promise<SignedTask> | undefined
      const blocker = await b.core.db.connect()
      try {
        await blocker.query('begin')
        await blocker.query('lock table task in share mode')
        const fault = await a.sign(user, key).catch((error: unknown) => error)
        assert.ok(fault instanceof Fault, String(fault))
        assert.deepEqual([fault.code, fault.extras.outcome], ['unavailable', 'unknown'])
        const given = String(fault.extras.idempotency_key)
        if (key !== undefined) assert.equal(given, key)
        await waiting('relation', 1)
        repeat = b.sign(user, given)
        await waiting('transactionid', 1)
        assert.equal((await effectsOf(user)).length, 1, 'the first request has not landed yet')
      } finally {
        // Its locks end with its connection.
        blocker.release(true)
      }
      const again = await repeat
      assert.equal(again.outcome, 'executed')
      assert.equal((await effectsOf(user)).length, 2)
      assert.ok(
        looks.get(again.task_id)?.every(({ neverSent }) => !neverSent),
        'it was looked up before it was sent',
      )
      assert.equal((await rows('select id from task where user_id = $1', user)).length, 2)
    })
  }

  test('a task that waits too long for its nonce is accepted without a signature, and signs after it', async () => {
    const user = newUser()
    const blocker = await b.core.db.connect()
    await blocker.query('begin')
    await blocker.query('select 1 from nonce_sequence where signer = $1 for update', [nonceSequence.signer])
    const all = Promise.all(Array.from({ length: 5 }, () => b.sign(user)))
    await eventually(
      async () =>
        (
          await rows(
            `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'select nonce_take_alone%'`,
          )
        ).length > 0 || undefined,
      'the first of them waits for its nonce',
    )
    time.offsetMs += 3_001
    blocker.release(true)
    const tasks = await all
    assert.ok(tasks.every(({ outcome }) => outcome === 'executed'))
    assert.equal(new Set((await effectsOf(user)).map(({ nonce }) => String(nonce))).size, 5)
  })
})
