/** Rows of one user that another transaction has locked delay nobody else. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { runAct } from '#durable/accept/act-invoker.ts'
import { createLockWaiters } from '#durable/accept/lock-waiters.ts'
import type { UserCall } from '#durable/accept/operation-call.ts'
import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { createNonceSequences } from '#durable/run/nonces.ts'
import { createCommitter } from '#durable/run/step-committer.ts'
import type { Transactions } from '#durable/transactions.ts'
import { createKeyedMutex } from '#kernel/async/keyed-mutex.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { act, group, implement } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { StepResult, TaskKind } from '#kernel/task/task.ts'
import { openDatabase } from '#store/database.ts'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { testSpend } from '../harness/spend.ts'
import { type EngineFixture, executed, newUser, openFixture, unblocked } from './engine-fixture.ts'

const kind: TaskKind = { kind: 'test', version: 1, priority: 1, steps: {} }
const sequence = { kind: 'test', chain: '1', signer: 'in order' }
const signed = async (id: string, nonce: bigint) => ({
  effect: { kind: 'test', externalId: id, policyReceipt: 'none', intent: {}, signed: {} },
  txAttempt: { externalId: `${id}:${nonce}`, raw: `signed ${nonce}`, nonce },
})
const signing: TaskKind = {
  ...kind,
  steps: {
    first: async ({ id }) => ({
      sign: {
        nonceSequence: sequence,
        build: async () => (nonce) => signed(id, nonce),
        signInOrder: async () => ({ sign: (nonce) => signed(id, nonce) }),
      },
      next: 'second',
    }),
  },
}
/** Signs before its acceptance is inserted, under a sequence of the user that may have gaps. */
const signingAlone = (signer: string): TaskKind => ({
  ...kind,
  steps: {
    first: async ({ id }) => ({
      sign: {
        nonceSequence: { ...sequence, signer },
        build: async () => (nonce) => signed(id, nonce),
        signOnAccept: async () => (nonce) => signed(id, nonce),
      },
      next: 'second',
    }),
  },
})
const touched = group('test', 'Operations of a test.', {
  touch: act('POST /test/touch', {
    summary: 'Locks the events of the user',
    access: 'trade',
    body: T.Object({}),
    output: T.Object({}),
  }),
})
const [touch] = implement(touched, {
  async touch(_input, { userId }, { tx }) {
    await query(tx!, 'select 1 from user_event_seq where user_id = $1 for update', [userId])
    return {}
  },
})
const touchOf = (userId: string) =>
  ({
    operation: touch,
    input: {},
    caller: { userId, agentId: userId, scheme: 'keypair', scopes: new Set() },
    options: { wait: false, timeoutMs: 1_000 },
    request: { id: 'r', address: '127.0.0.1', signal: new AbortController().signal },
  }) as UserCall<'act'>
const asset = 'test:coin'

describe('a locked row of one user', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  function instance({ pool, transaction, pipelinedTransaction } = fixture.admin) {
    const transactions = { pool, run: transaction, pipelined: pipelinedTransaction }
    const deps = { transactions, clock, random, instanceId: newUser() }
    const intake = createTaskIntake(deps)
    const accept = async (userId: string) => {
      const account = { owner: userId, asset, subAccount: 'wallet' }
      const spend = testSpend({ account, amountUnits: 0n })
      const admission = { data: {}, first: 'first', spend }
      return (await intake.accept({ userId, kind, input: {}, admission, leased: true })).task
    }
    /** Signs within the accepting transaction. */
    const sign = (userId: string, signs = signing) =>
      intake.accept({
        userId,
        kind: signs,
        input: {},
        admission: { data: {}, first: 'first', signOnAccept: true },
        leased: true,
      })
    const actDeps = {
      transactions,
      clock,
      random,
      actTurns: createKeyedMutex(),
      acknowledgeAct: () => {},
      lockWaiters: createLockWaiters(),
    }
    const runTouch = (userId: string) => runAct(actDeps, touchOf(userId))
    return { accept, sign, runTouch, committer: createCommitter(deps) }
  }
  const ensureSequence = (signer = sequence.signer) =>
    createNonceSequences({ pool: fixture.admin.pool } as Transactions).ensure({ ...sequence, signer }, 1n)
  const gaps = () =>
    fixture.rows(
      `select n from (select nonce as n, row_number() over (order by nonce) as place from tx_attempt where signer = $1) x
       where n <> place`,
      sequence.signer,
    )

  const rowsOfUser = {
    account: 'select 1 from account where owner = $1 for update',
    user_event_seq: 'select 1 from user_event_seq where user_id = $1 for update',
  }
  for (const [table, sql] of Object.entries(rowsOfUser)) {
    test(`an acceptance that waits for its row of ${table} delays no other, before, beside or after it`, async () => {
      const { accept } = instance()
      const blocked = newUser()
      await accept(blocked)
      const held = await fixture.lockRows(sql, blocked)
      let accepted = 0
      const waiting = Array.from({ length: 12 }, async () => {
        await accept(blocked)
        accepted += 1
      })
      try {
        const others = Array.from({ length: 40 }, newUser)
        await unblocked(Promise.all(others.map((user) => accept(user))))
        // Those that come while it waits do not even begin to wait.
        for (const user of others) await unblocked(accept(user))
        assert.equal(accepted, 0)
      } finally {
        held[Symbol.dispose]()
      }
      await Promise.all(waiting)
      assert.equal(accepted, waiting.length)
    })
  }

  test('an acceptance whose rows stay locked is refused as one that can be repeated', async (t) => {
    const [blocked, other] = [newUser(), newUser()]
    await instance().accept(blocked)
    const held = await fixture.lockRows(rowsOfUser.account, blocked)
    const short = { url: fixture.url, poolMax: 2, applicationName: 'short', statementTimeoutMs: 1_000 }
    const database = openDatabase(short)
    t.after(() => database.close())
    const { accept } = instance(database)
    try {
      await assert.rejects(accept(blocked), { code: 'unavailable', extras: { retry_after: 1 } })
      await accept(other)
    } finally {
      held[Symbol.dispose]()
    }
    await accept(blocked)
  })

  test('a step that waits for a row of its user delays the steps of no other', async () => {
    const { accept, committer } = instance()
    const blocked = newUser()
    const own = await Promise.all(Array.from({ length: 28 }, () => accept(blocked)))
    const others = await Promise.all(Array.from({ length: 40 }, () => accept(newUser())))
    const held = await fixture.lockRows(rowsOfUser.user_event_seq, blocked)
    const waiting = own.map((task) => committer.step(task, executed))
    try {
      const ends = await unblocked(Promise.all(others.map((task) => committer.step(task, executed))))
      assert.ok(ends.every((end) => end?.task.status === 'completed'))
      const open = await fixture.rows(
        `select id from task where user_id = $1 and status = 'running'`,
        blocked,
      )
      assert.equal(open.length, own.length)
    } finally {
      held[Symbol.dispose]()
    }
    const ends = await Promise.all(waiting)
    assert.ok(ends.every((end) => end?.task.status === 'completed'))
  })

  for (const [name, result] of Object.entries({
    sign: {
      sign: {
        nonceSequence: { ...sequence, signer: 'steps' },
        build: async () => (nonce) => signed(newUser(), nonce),
      },
      next: 'second',
    },
    'write rows of their feature': { ...executed, writes: async () => {} },
  } satisfies Record<string, StepResult>))
    test(`steps that ${name} and wait for a row of their user leave connections to the others`, async () => {
      const { accept, committer } = instance()
      await ensureSequence('steps')
      const blocked = newUser()
      const own = await Promise.all(Array.from({ length: 12 }, () => accept(blocked)))
      const held = await fixture.lockRows(rowsOfUser.user_event_seq, blocked)
      const waiting = own.map((task) => committer.step(task, result))
      try {
        await unblocked(Promise.all(Array.from({ length: 8 }, () => accept(newUser()))))
      } finally {
        held[Symbol.dispose]()
      }
      for (const end of await Promise.all(waiting)) assert.ok(end)
    })

  test('acts that wait for a row of their user leave connections to the others', async () => {
    const { accept, runTouch } = instance()
    const users = Array.from({ length: 12 }, newUser)
    await Promise.all(users.map((user) => accept(user)))
    const held = await fixture.lockRows(
      'select 1 from user_event_seq where user_id = any($1::uuid[]) for update',
      users,
    )
    const waiting = users.flatMap((user) => Array.from({ length: 4 }, () => runTouch(user)))
    try {
      const others = Array.from({ length: 8 }, newUser)
      await unblocked(Promise.all(others.map((user) => accept(user))))
      await unblocked(Promise.all(others.map((user) => runTouch(user))))
    } finally {
      held[Symbol.dispose]()
    }
    await Promise.all(waiting)
  })

  test('acceptances that wait for the nonces of their signer leave connections to the others', async () => {
    const { accept, sign } = instance()
    const blocked = newUser()
    await ensureSequence(blocked)
    const held = await fixture.lockRows('select 1 from nonce_sequence where signer = $1 for update', blocked)
    const waiting = Array.from({ length: 12 }, () => sign(blocked, signingAlone(blocked)))
    try {
      await unblocked(Promise.all(Array.from({ length: 8 }, () => accept(newUser()))))
    } finally {
      held[Symbol.dispose]()
    }
    await Promise.all(waiting)
  })

  test('an acceptance that signs in order and waits for a row of its user delays no other signature', async () => {
    const { sign } = instance()
    await ensureSequence()
    const blocked = newUser()
    await sign(blocked)
    const held = await fixture.lockRows(rowsOfUser.user_event_seq, blocked)
    const waiting = [sign(blocked), sign(blocked)]
    try {
      await unblocked(Promise.all(Array.from({ length: 8 }, () => sign(newUser()))))
    } finally {
      held[Symbol.dispose]()
    }
    await Promise.all(waiting)
    assert.deepEqual(await gaps(), [])
  })

  test('acceptances that wait for the sequence that all of them need are signed together once it is free', async () => {
    const { sign } = instance()
    await ensureSequence()
    const held = await fixture.lockRows(
      'select 1 from nonce_sequence where signer = $1 for update',
      sequence.signer,
    )
    const waiting = Promise.all(Array.from({ length: 8 }, () => sign(newUser())))
    const waits = () =>
      fixture.rows<{ waited_ms: number }>(
        `select extract(epoch from clock_timestamp() - query_start) * 1000 as waited_ms from pg_stat_activity
         where wait_event_type = 'Lock' and query like 'update nonce_sequence%'`,
      )
    await eventually(
      async () => (Number((await waits())[0]?.waited_ms ?? 0) > 1_000 ? true : undefined),
      'a batch that waits for its sequence for a second',
    )
    held[Symbol.dispose]()
    await waiting
    assert.deepEqual(await gaps(), [])
  })
})
