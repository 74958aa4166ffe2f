/** Units that the acceptance of a task draws from several accounts of its user, such as credits of several origins. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ledger } from '#durable/ledger/ledger.ts'
import type { Task } from '#durable/task/task-row.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Draw, postDraw } from '#kernel/task/ledger-draw.ts'
import { externalAccount, type StepResult } from '#kernel/task/task.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { testSpend } from '../harness/spend.ts'
import { type EngineFixture, executed, newUser, openFixture, writer } from './engine-fixture.ts'

const asset = 'test:credits'
const names = ['first', 'second', 'third']

describe('draws', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  /** A user whose accounts have these units, in the order of spending. */
  async function newOwner(...units: bigint[]) {
    const owner = newUser()
    const moves = units.flatMap((amountUnits, at) =>
      amountUnits === 0n
        ? []
        : {
            move: 'transfer' as const,
            key: `${owner}:grant:${at}`,
            debit: externalAccount(asset),
            credit: { owner, asset, subAccount: names[at]! },
            amountUnits,
            reason: 'test',
          },
    )
    await fixture.admin.transaction((tx) => ledger.apply(tx, moves, { taskId: null, now: new Date() }))
    const draw = (minUnits: bigint, maxUnits: bigint): Draw => ({
      asset,
      subAccounts: names,
      minUnits,
      maxUnits,
      reason: 'test',
      refuse: (available) => new Fault('conflict', `${available} are available`),
    })
    return {
      owner,
      accept: (min: bigint, max: bigint, by = writer(fixture)) => by.accept(owner, { draw: draw(min, max) }),
      /** The free and the held part of each account. */
      async parts() {
        const found = await ledger.subAccounts(fixture.admin.pool, owner, asset)
        return names.flatMap((name) => {
          const account = found.find(({ subAccount }) => subAccount === name)
          return account ? [[account.availUnits, account.heldUnits]] : []
        })
      },
      tasks: () => fixture.rows('select id from task where user_id = $1', owner),
    }
  }

  const end = (task: Task, result: StepResult) => writer(fixture).step(task, result)

  test('accounts are drawn in their order, up to the most', async () => {
    const { accept, parts } = await newOwner(2n, 3n, 10n)
    const task = await accept(1n, 6n)
    assert.deepEqual(await parts(), [
      [0n, 2n],
      [0n, 3n],
      [9n, 1n],
    ])
    const drawn = await ledger.drawn(fixture.admin.pool, task.id)
    assert.deepEqual(
      drawn.map(({ amountUnits }) => amountUnits),
      [2n, 3n, 1n],
    )
  })

  test('a draw takes what there is where that is less than the most', async () => {
    const { accept, parts } = await newOwner(2n, 0n, 2n)
    await accept(1n, 40n)
    assert.deepEqual(await parts(), [
      [0n, 2n],
      [0n, 2n],
    ])
  })

  test('a draw below the least is refused with what is available, and stores nothing', async () => {
    const { accept, parts, tasks } = await newOwner(2n, 2n)
    await assert.rejects(accept(5n, 40n), { code: 'conflict', message: '4 are available' })
    assert.deepEqual(await parts(), [
      [2n, 0n],
      [2n, 0n],
    ])
    assert.equal((await tasks()).length, 0)
    const { accept: acceptOfPoor } = await newOwner()
    await assert.rejects(acceptOfPoor(1n, 1n), { message: '0 are available' })
  })

  test('the end posts what was spent, and the rest goes back', async () => {
    const { accept, parts } = await newOwner(2n, 3n)
    const task = await accept(1n, 5n)
    const drawn = await ledger.drawn(fixture.admin.pool, task.id)
    assert.ok(await end(task, { ...executed, moves: postDraw(drawn, 3n) }))
    assert.deepEqual(await parts(), [[2n, 0n]])
    assert.deepEqual(await ledger.drawn(fixture.admin.pool, task.id), [])
    assert.equal(await ledgerDrift(fixture.admin.pool), 0)
  })

  test('a task that fails gives everything back', async () => {
    const { accept, parts } = await newOwner(2n, 3n)
    const task = await accept(1n, 5n)
    assert.ok(
      await end(task, { end: 'failed', outcome: 'not_executed', error: { code: 'test', message: '' } }),
    )
    assert.deepEqual(await parts(), [
      [2n, 0n],
      [3n, 0n],
    ])
  })

  test('64 draws at once, at two instances, beside spends of other users: as many as there are units', async () => {
    const { accept, parts, tasks } = await newOwner(1n, 0n, 2n)
    const instances = [writer(fixture), writer(fixture)]
    const spends = Array.from({ length: 16 }, async (_, at) => {
      const account = { owner: newUser(), asset: 'test:coin', subAccount: 'wallet' }
      const spend = testSpend({ account, amountUnits: 1n }, { totalUnits: 5n, version: 0n })
      await instances[at % 2]!.accept(account.owner, { spend })
    })
    const draws = Array.from({ length: 64 }, (_, at) => accept(1n, 1n, instances[at % 2]))
    const ends = await Promise.allSettled(draws)
    await Promise.all(spends)
    assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 3)
    for (const each of ends)
      if (each.status === 'rejected') assert.equal((each.reason as Fault).code, 'conflict')
    assert.equal((await tasks()).length, 3)
    assert.deepEqual(await parts(), [
      [0n, 1n],
      [0n, 2n],
    ])
    assert.equal(await ledgerDrift(fixture.admin.pool), 0)
  })
})
