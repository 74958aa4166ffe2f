/** Acceptances that are inserted together: each verdict, alone and beside others, and the locks of overlapping batches. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { KeyTaken, StaleBalance } from '#durable/accept/acceptance.ts'
import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { ledger } from '#durable/ledger/ledger.ts'
import { createCommitter } from '#durable/run/step-committer.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { type Admission, externalAccount, type TaskKind } from '#kernel/task/task.ts'
import { testSpend, unlimited } from '../harness/spend.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const asset = 'test:coin'
const kind: TaskKind = { kind: 'test', version: 1, priority: 1, steps: {} }
const walletOf = (owner: string) => ({ owner, asset, subAccount: 'wallet' })
const codeOf = (error: unknown) => (error instanceof Fault ? error.code : String(error))

describe('acceptances that are inserted together', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  function instance() {
    const { pool, transaction, pipelinedTransaction } = fixture.admin
    const deps = {
      transactions: { pool, run: transaction, pipelined: pipelinedTransaction },
      clock,
      random,
      instanceId: newUser(),
    }
    const intake = createTaskIntake(deps)
    const accept = (userId: string, admission: Partial<Admission> = {}, key?: string) =>
      intake.accept({
        userId,
        kind,
        input: {},
        admission: { data: {}, first: 'first', ...admission },
        leased: true,
        ...(key !== undefined && { key: { key, operation: 'test', hash: 'h' } }),
      })
    const pay = (userId: string, amountUnits: bigint, seen?: { totalUnits: bigint; version: bigint }) =>
      accept(userId, { spend: testSpend({ account: walletOf(userId), amountUnits }, seen) })
    return { accept, pay, committer: createCommitter(deps) }
  }
  const balanceOf = (userId: string) => ledger.balance(fixture.admin.pool, walletOf(userId))
  const taskRows = async (userId: string) =>
    (await fixture.rows('select id from task where user_id = $1', userId)).length

  test('two acceptances of one account that exceed the balance together are one task and one shortage', async () => {
    const { pay } = instance()
    const user = newUser()
    const seen = { totalUnits: 100n, version: 0n }
    const ends = await Promise.allSettled([
      pay(user, 70n, seen),
      pay(user, 70n, seen),
      pay(newUser(), 1n, seen),
    ])
    assert.deepEqual(
      ends.map((end) => (end.status === 'fulfilled' ? 'accepted' : codeOf(end.reason))),
      ['accepted', 'insufficient_balance', 'accepted'],
    )
    const { availUnits, heldUnits } = await balanceOf(user)
    assert.deepEqual([availUnits, heldUnits], [30n, 70n])
    assert.equal(await taskRows(user), 1)
  })

  test('a key that is in flight elsewhere is taken, and one that is refused is free again', async () => {
    const [a, b] = [instance(), instance()]
    const user = newUser()
    const ends = await Promise.allSettled([a.accept(user, {}, 'k'), b.accept(user, {}, 'k')])
    assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1)
    const refused = ends.find((end) => end.status === 'rejected')
    assert.ok(refused?.status === 'rejected' && refused.reason instanceof KeyTaken)
    const spend = testSpend({ account: walletOf(user), amountUnits: 5n })
    await assert.rejects(a.accept(user, { spend }, 'free'), { code: 'insufficient_balance' })
    await a.accept(user, {}, 'free')
    assert.equal(await taskRows(user), 2)
  })

  test('a refused acceptance refuses no other of its batch, and writes nothing', async () => {
    const { accept, pay } = instance()
    const [blocked, stale, short, good] = [newUser(), newUser(), newUser(), newUser()]
    await pay(stale, 0n, { totalUnits: 9n, version: 0n })
    const denial = new Fault('trading_paused', 'paused')
    const grant = { ...unlimited(), exit: false, version: 7 }
    const asked = {
      ...testSpend({ account: walletOf(blocked), amountUnits: 0n }),
      grant,
      check: async () => Promise.reject(denial),
    }
    const gas = {
      chainId: '1',
      wei: 10n,
      budgetWei: 5n,
      refuse: (used: bigint) => new Fault('rate_limited', `used ${used}`),
    }
    const poor = newUser()
    const ends = await Promise.allSettled([
      accept(newUser()),
      accept(blocked, { spend: asked }),
      pay(stale, 1n, { totalUnits: 9n, version: 5n }),
      pay(short, 1n),
      accept(poor, { spend: { ...testSpend({ account: walletOf(poor), amountUnits: 0n }), gas } }),
      pay(good, 3n, { totalUnits: 4n, version: 0n }),
    ])
    const outcomes = ends.map((end) => (end.status === 'fulfilled' ? 'accepted' : end.reason))
    assert.ok(outcomes[2] instanceof StaleBalance)
    assert.deepEqual(
      outcomes.map((each) =>
        each instanceof Fault ? each.code : each instanceof StaleBalance ? 'stale' : each,
      ),
      ['accepted', 'trading_paused', 'stale', 'insufficient_balance', 'rate_limited', 'accepted'],
    )
    for (const user of [blocked, short, poor]) assert.equal(await taskRows(user), 0)
    assert.deepEqual((await balanceOf(good)).heldUnits, 3n)
  })

  test('an unexpected error in a batch fails its own acceptance only, and loses no other', async () => {
    const { accept } = instance()
    const users = Array.from({ length: 8 }, newUser)
    const ends = await Promise.allSettled(
      users.map((user, n) => accept(user, n === 4 ? { rows: [{ table: 'no_such_table', rows: [{}] }] } : {})),
    )
    assert.deepEqual(
      ends.map(({ status }) => status === 'fulfilled'),
      users.map((_, n) => n !== 4),
    )
    const counts = await Promise.all(users.map(taskRows))
    assert.deepEqual(counts, [1, 1, 1, 1, 0, 1, 1, 1])
  })

  test('two instances that batch the same users in opposite orders neither deadlock nor lose a unit', async () => {
    const [a, b] = [instance(), instance()]
    const users = Array.from({ length: 24 }, newUser)
    const start = 1_000n
    for (const user of users)
      await fixture.admin.transaction((tx) =>
        ledger.apply(
          tx,
          [
            {
              move: 'transfer',
              key: `${user}:fund`,
              debit: externalAccount(asset),
              credit: walletOf(user),
              amountUnits: start,
              reason: 'fund',
            },
          ],
          { taskId: null, now: new Date() },
        ),
      )
    const deadlocks = async () => {
      await fixture.rows('select pg_stat_force_next_flush()')
      const [row] = await fixture.rows<{ n: string }>(
        'select deadlocks::text as n from pg_stat_database where datname = current_database()',
      )
      return Number(row?.n)
    }
    const before = await deadlocks()
    const rounds = 12
    const run = async ({ pay, committer }: ReturnType<typeof instance>, order: string[]) => {
      for (let round = 0; round < rounds; round++)
        await Promise.all(
          order.map(async (user, n) => {
            const { task } = await pay(user, 2n)
            const end =
              (n + round) % 3 === 0
                ? {
                    end: 'failed' as const,
                    outcome: 'not_executed' as const,
                    error: { code: 'no', message: 'no' },
                  }
                : { ...executed, spent: 1n }
            assert.ok(await committer.step(task, end))
          }),
        )
    }
    await Promise.all([run(a, users), run(b, users.toReversed())])
    assert.equal(await deadlocks(), before)
    const balances = await Promise.all(users.map(balanceOf))
    const total = balances.reduce((sum, { availUnits }) => sum + availUnits, 0n)
    // Two thirds of all tasks delivered one unit each.
    assert.equal(total, BigInt(users.length) * start - BigInt((2 * rounds * users.length * 2) / 3))
    assert.ok(balances.every(({ heldUnits }) => heldUnits === 0n))
    const gaps = await fixture.rows(
      `select user_id from user_event where user_id = any($1) group by user_id having count(*) <> max(seq) or min(seq) <> 1`,
      users,
    )
    assert.deepEqual(gaps, [])
  })
})
