/** Every transaction of the engine locks in one order, so that two instances that serve the same users never deadlock. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { ledger } from '#durable/ledger/ledger.ts'
import { createNonceSequences } from '#durable/run/nonces.ts'
import { createCommitter } from '#durable/run/step-committer.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { externalAccount, type Move, type StepResult, type TaskKind, type Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { testSpend, unlimited } from '../harness/spend.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const asset = 'test:coin'
const walletOf = (owner: string) => ({ owner, asset, subAccount: 'wallet' })
const sequence = { kind: 'test', chain: '1', signer: 'lock order' }
const signed = async (id: string, nonce: bigint) => ({
  effect: { kind: 'test', externalId: id, policyReceipt: 'none', intent: {}, signed: {} },
  txAttempt: { externalId: `${id}:${nonce}`, raw: `signed ${nonce}`, nonce },
})
const signs = async (id: string): Promise<StepResult> => ({
  sign: {
    nonceSequence: sequence,
    build: async () => (nonce) => signed(id, nonce),
    signInOrder: async () => ({ sign: (nonce) => signed(id, nonce) }),
  },
  next: 'second',
})
const kind: TaskKind = {
  kind: 'test',
  version: 1,
  priority: 1,
  steps: { first: async ({ id }) => signs(id) },
}
const failed: StepResult = {
  end: 'failed',
  outcome: 'not_executed',
  error: { code: 'no', message: 'no' },
}
const users = Array.from({ length: 6 }, newUser)
const rounds = 25
const startUnits = 100_000n

describe('two instances that serve the same users from both sides', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
    await createNonceSequences({ pool: fixture.admin.pool } as never).ensure(sequence, 1n)
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const transfer = (from: Move & { move: 'transfer' }, tx: Tx) =>
    ledger.apply(tx, [from], { taskId: null, now: new Date() })
  const move = (debit: Move & { move: 'transfer' }) => fixture.admin.transaction((tx) => transfer(debit, tx))

  function instance() {
    const { pool, transaction, pipelinedTransaction } = fixture.admin
    const transactions = { pool, run: transaction, pipelined: pipelinedTransaction }
    const deps = { transactions, clock, random, instanceId: newUser() }
    const intake = createTaskIntake(deps)
    const committer = createCommitter(deps)
    const gas = {
      chainId: '1',
      wei: 1n,
      budgetWei: null,
      refuse: () => new Fault('rate_limited', 'the budget is used'),
    }
    const grant = { ...unlimited(), exit: false, countedMicros: 5n, perDayMicros: 1_000_000_000n }
    const accept = async (userId: string, { signOnAccept = false, seenUnits = 0n } = {}) => {
      const held = { account: walletOf(userId), amountUnits: 2n }
      const { version } = await ledger.balance(pool, held.account)
      const seen = seenUnits === 0n ? undefined : { totalUnits: seenUnits, version }
      const spend = { ...testSpend(held, seen), grant, check: async () => grant, gas }
      const admission = { data: {}, first: 'first', spend, signOnAccept }
      return intake.accept({ userId, kind, input: {}, admission, leased: true })
    }
    /** A request of the user that locks the limits, moves money between two users, and writes an event of both. */
    const act = (one: string, other: string, turn: string) =>
      fixture.admin.transaction(async (tx) => {
        for (const user of [one, other].toSorted())
          await query(tx, 'select policy_lock($1, $2)', [user, new Date()])
        const key = `${turn}:${one}:${other}`
        const [debit, credit] = [walletOf(one), walletOf(other)]
        await transfer({ move: 'transfer', key, debit, credit, amountUnits: 1n, reason: 'test' }, tx)
        for (const user of [one, other].toSorted())
          await query(tx, 'select user_event_append($1, null, $2::jsonb, $3)', [
            user,
            JSON.stringify([{ type: 'test', data: {} }]),
            new Date(),
          ])
      })
    return { accept, act, committer }
  }

  const deadlocks = async () => {
    await fixture.rows('select pg_stat_force_next_flush()')
    const [row] = await fixture.rows<{ n: string }>(
      'select deadlocks::text as n from pg_stat_database where datname = current_database()',
    )
    return Number(row?.n)
  }

  test('neither wait for each other in a circle nor lose a unit, a share of the limits, gas or an event', async () => {
    for (const user of users)
      await move({
        move: 'transfer',
        key: `${user}:start`,
        debit: externalAccount(asset),
        credit: walletOf(user),
        amountUnits: startUnits,
        reason: 'test',
      })
    const before = await deadlocks()
    let deliveredUnits = 0n
    const serve = async (name: string, order: readonly string[]) => {
      const { accept, act, committer } = instance()
      for (let round = 0; round < rounds; round++)
        await Promise.all(
          order.flatMap((user, n) => {
            const task = async (turn: number) => {
              const accepted = await accept(user, { signOnAccept: turn === 3 })
              if (turn === 3) return
              const begun =
                turn === 2 ? await committer.step(accepted.task, await signs(accepted.task.id)) : accepted
              assert.ok(begun)
              // A signed task does not end here.
              if (turn === 2) return
              const fee: Move = {
                move: 'transfer',
                key: `${accepted.task.id}:fee`,
                debit: walletOf(order[(n + 1) % order.length]!),
                credit: walletOf(user),
                amountUnits: 1n,
                reason: 'test',
              }
              const end = turn === 0 ? failed : { ...executed, spent: 1n, moves: round % 2 ? [fee] : [] }
              assert.ok(await committer.step(accepted.task, end))
              if (turn !== 0) deliveredUnits += 1n
            }
            const other = order[(n + 1) % order.length]!
            return [task(0), task(1), task(round % 4), act(user, other, `${name}:${round}`)]
          }),
        )
    }
    await Promise.all([serve('a', users), serve('b', users.toReversed())])
    assert.equal((await deadlocks()) - before, 0)

    const balances = await Promise.all(
      users.map((user) => ledger.balance(fixture.admin.pool, walletOf(user))),
    )
    const total = balances.reduce((sum, { availUnits, heldUnits }) => sum + availUnits + heldUnits, 0n)
    assert.equal(total, BigInt(users.length) * startUnits - deliveredUnits)
    const differing = await fixture.rows(
      `select user_id from policy_spend group by user_id having
         coalesce(sum(usd_micros) filter (where state = 'reserved'), 0)
           <> (select sum(usd_micros) from policy_spend_minute m where m.user_id = policy_spend.user_id)`,
    )
    assert.deepEqual(differing, [])
    const unreleased = await fixture.rows(
      `select id from task join policy_spend on task_id = id
       where (outcome is not distinct from 'not_executed') <> (policy_spend.state = 'released')`,
    )
    assert.deepEqual(unreleased, [])
    const gasLeft = await fixture.rows(
      `select user_id from sponsor_charge c group by user_id having
         sum(wei) <> (select sum(wei) from sponsor_day d where d.user_id = c.user_id)`,
    )
    assert.deepEqual(gasLeft, [])
    const eventGaps = await fixture.rows(
      'select user_id from user_event group by user_id having count(*) <> max(seq) or min(seq) <> 1',
    )
    assert.deepEqual(eventGaps, [])
    const nonceGaps = await fixture.rows(
      `select n from (select nonce as n, row_number() over (order by nonce) as place from tx_attempt where signer = $1) x
       where n <> place`,
      sequence.signer,
    )
    assert.deepEqual(nonceGaps, [])
  })
})
