/** What the ledger makes of balances that were read from a chain, beside holds and settlements. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ledger, StaleObservation } from '#durable/ledger.ts'
import { type Move, outside } from '#kernel/task.ts'
import { newUser, openRig, type Rig, writer } from './rig.ts'

const asset = 'test:coin'
const coin = { symbol: 'COIN', decimals: 2, address: 'coin' }

describe('observed balances', () => {
  let rig: Rig
  before(async () => {
    rig = await openRig()
  })
  after(async () => rig[Symbol.asyncDispose]())

  function newAccount() {
    const owner = newUser()
    const account = { owner, asset, book: 'wallet' }
    const { accept } = writer(rig)
    const read = () => ledger.balance(rig.admin.pool, account)
    const apply = (move: Move) =>
      rig.admin.transaction((tx) => ledger.apply(tx, [move], { taskId: null, now: new Date() }))
    return {
      read,
      /** What is free and what is on hold. */
      parts: async () => {
        const { availUnits, heldUnits } = await read()
        return [availUnits, heldUnits]
      },
      observe: (totalUnits: bigint, settlements: bigint) =>
        accept(owner, { observe: [{ account, totalUnits, settlements }] }),
      hold: (amountUnits: bigint) =>
        apply({
          move: 'hold',
          key: `${owner}:hold`,
          debit: account,
          credit: outside(asset),
          amountUnits,
          reason: 'test',
          token: coin,
        }),
      end: (move: 'post' | 'void') => apply({ move, key: `${owner}:hold` }),
      accepted: async () => (await rig.rows('select 1 from task where user_id = $1', owner)).length,
    }
  }

  test('what is on hold is part of an observed balance and is not counted twice', async () => {
    const { read, parts, observe, hold } = newAccount()
    await observe(100n, 0n)
    await hold(40n)
    const { settlements } = await read()
    await observe(100n, settlements)
    assert.deepEqual(await parts(), [60n, 40n])
    await observe(120n, settlements)
    assert.deepEqual(await parts(), [80n, 40n])
    await observe(50n, settlements)
    assert.deepEqual(await parts(), [10n, 40n])
    await observe(30n, settlements)
    assert.deepEqual(await parts(), [0n, 40n], 'a hold outlasts a balance that fell below it')
  })

  for (const [move, left] of [
    ['post', 60n],
    ['void', 100n],
  ] as const)
    test(`a balance that was read before a ${move} is refused after it, and no task is made`, async () => {
      const { read, parts, observe, hold, end, accepted } = newAccount()
      await observe(100n, 0n)
      await hold(40n)
      const { settlements } = await read()
      await end(move)
      await assert.rejects(observe(100n, settlements), StaleObservation)
      assert.deepEqual(await parts(), [left, 0n])
      assert.equal(await accepted(), 1)
      await observe(left, (await read()).settlements)
      assert.deepEqual(await parts(), [left, 0n])
    })

  test('a balance that was read before a hold is still accepted after it', async () => {
    const { read, parts, observe, hold } = newAccount()
    await observe(100n, 0n)
    const { settlements } = await read()
    await hold(40n)
    assert.equal((await read()).settlements, settlements)
    await observe(110n, settlements)
    assert.deepEqual(await parts(), [70n, 40n])
  })
})
