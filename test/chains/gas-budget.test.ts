/** Gas that the sponsor pays for one user within a day: never more than the budget, also under concurrent requests. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createGasBudget, exceedsCharge } from '#engines/evm-batch/user-gas-budget.ts'
import { systemRandom as random, uuidv7 } from '#kernel/id.ts'
import { type Database, openDatabase } from '#store/database.ts'
import { acceptTask } from '../harness/accept-task.ts'
import { type TestDatabase, testDatabase } from '../harness/cluster.ts'
import { testSpend } from '../harness/spend.ts'

const chainId = '8453'
const id = () => uuidv7(new Date(), random)
const isSpent = { code: 'rate_limited', extras: { budget: 'sponsor_gas_per_day' } }

describe('the gas budget of a user', () => {
  let db: TestDatabase
  let database: Database
  let today = new Date('2026-03-01T12:00:00Z')
  before(async () => {
    db = await testDatabase()
    database = openDatabase({ url: db.url, poolMax: 8, applicationName: 'gas budget test' })
  })
  after(async () => {
    await database?.close()
    await db?.drop()
  })

  const clock = { now: () => today }
  const budget = () => createGasBudget({ db: database.pool, budgetWeiOf: () => 100n, clock })
  /** Accepts a task with this charge, and returns its id. */
  const reserve = async (userId: string, wei: bigint, { fullExit = false, isExit = false } = {}) => {
    const gas = budget().chargeOf({ chainId, units: wei, fullExit, isExit })
    const account = { owner: userId, asset: 'test:coin', subAccount: 'wallet' }
    const spend = { ...testSpend({ account, amountUnits: 0n }), gas }
    const { pool, transaction: run, pipelinedTransaction: pipelined } = database
    return acceptTask({ transactions: { pool, run, pipelined }, clock }, userId, spend)
  }
  const usedBy = async (userId: string) => {
    const { rows } = await database.pool.query('select wei from sponsor_day where user_id = $1', [userId])
    return rows.map(({ wei }) => wei)
  }
  const rejected = (work: Promise<unknown>) =>
    assert.rejects(work, ({ code, extras }: typeof isSpent) => {
      assert.deepEqual({ code, extras: { budget: extras.budget } }, isSpent)
      return true
    })

  test('concurrent reservations take no more than the budget, and leave others theirs', async () => {
    const [greedy, other] = [id(), id()]
    const all = await Promise.allSettled(Array.from({ length: 20 }, () => reserve(greedy, 30n)))
    assert.equal(all.filter(({ status }) => status === 'fulfilled').length, 3)
    assert.deepEqual(await usedBy(greedy), ['90'])
    await rejected(reserve(greedy, 11n))
    await reserve(other, 100n)
  })

  test('a whole withdrawal is never rejected, and counts', async () => {
    const userId = id()
    await reserve(userId, 100n)
    await reserve(userId, 50n, { fullExit: true })
    assert.deepEqual(await usedBy(userId), ['150'])
  })

  test('exits may use as much again as entries, in either order', async () => {
    const [entriesFirst, exitsFirst] = [id(), id()]
    await reserve(entriesFirst, 100n)
    await rejected(reserve(entriesFirst, 1n))
    await reserve(entriesFirst, 100n, { isExit: true })
    await rejected(reserve(entriesFirst, 1n, { isExit: true }))
    await reserve(exitsFirst, 199n, { isExit: true })
    await rejected(reserve(exitsFirst, 1n))
    await reserve(exitsFirst, 1n, { isExit: true })
    assert.deepEqual([await usedBy(entriesFirst), await usedBy(exitsFirst)], [['200'], ['200']])
  })

  test('an ended task counts what was paid for it, once', async () => {
    const userId = id()
    const taskId = await reserve(userId, 100n)
    for (let times = 0; times < 2; times++)
      await database.transaction((tx) => budget().settle(tx, taskId, 20n))
    assert.deepEqual(await usedBy(userId), ['20'])
    await reserve(userId, 80n)
    await rejected(reserve(userId, 1n))
  })

  test('the sponsor bears a cost of up to twice the charge, which counts until it is settled', async () => {
    const taskId = await reserve(id(), 100n)
    const charged = await budget().chargedWei(taskId, chainId)
    assert.equal(charged, 100n)
    assert.deepEqual(
      [200n, 201n].map((wei) => exceedsCharge(wei, charged)),
      [false, true],
    )
    assert.equal(await budget().chargedWei(taskId, '1'), 0n)
    await database.transaction((tx) => budget().settle(tx, taskId, 20n))
    assert.equal(await budget().chargedWei(taskId, chainId), 0n)
  })

  test('the budget is full again on the next day', async () => {
    const userId = id()
    await reserve(userId, 100n)
    today = new Date('2026-03-02T00:00:00Z')
    await reserve(userId, 100n)
    assert.deepEqual(await usedBy(userId), ['100', '100'])
  })
})
