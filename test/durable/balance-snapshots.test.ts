/** How the ledger applies balances that were read from a chain, with concurrent holds and settlements. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { StaleBalance } from '#durable/accept/acceptance.ts'
import { ledger } from '#durable/ledger/ledger.ts'
import { externalAccount, type Move } from '#kernel/task/task.ts'
import { testSpend } from '../harness/spend.ts'
import { type EngineFixture, newUser, openFixture, writer } from './engine-fixture.ts'

const asset = 'test:coin'
const coin = { symbol: 'COIN', decimals: 2, address: 'coin' }

describe('balance snapshots', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  function newAccount() {
    const owner = newUser()
    const account = { owner, asset, subAccount: 'wallet' }
    const { accept } = writer(fixture)
    const read = () => ledger.balance(fixture.admin.pool, account)
    const apply = (move: Move) =>
      fixture.admin.transaction((tx) => ledger.apply(tx, [move], { taskId: null, now: new Date() }))
    return {
      read,
      /** The free and the held part. */
      parts: async () => {
        const { availUnits, heldUnits } = await read()
        return [availUnits, heldUnits]
      },
      acceptWithSnapshot: (totalUnits: bigint, version: bigint) =>
        accept(owner, { spend: testSpend({ account, amountUnits: 0n }, { totalUnits, version }) }),
      hold: (amountUnits: bigint) =>
        apply({
          move: 'hold',
          key: `${owner}:hold`,
          debit: account,
          credit: externalAccount(asset),
          amountUnits,
          reason: 'test',
          token: coin,
        }),
      end: (move: 'post' | 'void') => apply({ move, key: `${owner}:hold` }),
      accepted: async () => (await fixture.rows('select 1 from task where user_id = $1', owner)).length,
    }
  }

  test('a hold is part of a snapshot and is not counted twice', async () => {
    const { read, parts, acceptWithSnapshot, hold } = newAccount()
    await acceptWithSnapshot(100n, 0n)
    await hold(40n)
    const { version } = await read()
    await acceptWithSnapshot(100n, version)
    assert.deepEqual(await parts(), [60n, 40n])
    await acceptWithSnapshot(120n, version)
    assert.deepEqual(await parts(), [80n, 40n])
    await acceptWithSnapshot(50n, version)
    assert.deepEqual(await parts(), [10n, 40n])
    await acceptWithSnapshot(30n, version)
    assert.deepEqual(await parts(), [0n, 40n], 'a hold outlasts a balance that fell below it')
  })

  for (const [move, left] of [
    ['post', 60n],
    ['void', 100n],
  ] as const)
    test(`a balance that was read before a ${move} is rejected after it, and no task is created`, async () => {
      const { read, parts, acceptWithSnapshot, hold, end, accepted } = newAccount()
      await acceptWithSnapshot(100n, 0n)
      await hold(40n)
      const { version } = await read()
      await end(move)
      await assert.rejects(acceptWithSnapshot(100n, version), StaleBalance)
      assert.deepEqual(await parts(), [left, 0n])
      assert.equal(await accepted(), 1)
      await acceptWithSnapshot(left, (await read()).version)
      assert.deepEqual(await parts(), [left, 0n])
    })

  test('a balance that was read before a hold is still accepted after it', async () => {
    const { read, parts, acceptWithSnapshot, hold } = newAccount()
    await acceptWithSnapshot(100n, 0n)
    const { version } = await read()
    await hold(40n)
    assert.equal((await read()).version, version)
    await acceptWithSnapshot(110n, version)
    assert.deepEqual(await parts(), [70n, 40n])
  })
})
