/** A user without SOL acts on Solana: the user signs, the sponsor pays, and the chain's own record is the outcome. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createSvmApp, type SvmApp } from './svm-app.ts'
import { recipient } from './svm-send.ts'

describe('sponsored transactions on Solana', () => {
  let app: SvmApp
  before(async () => {
    app = await createSvmApp()
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })
  beforeEach(() => app.heal())

  test('a user without SOL sends tokens, and the chain shows exactly that', async () => {
    const user = await app.fundedUser('USDC')
    const before = await app.unitsOf(recipient, 'USDC')
    const done = await app.send(user, { symbol: 'USDC', units: '25000000' })
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.deepEqual(
      done.balance_changes.map(({ symbol, amount }) => [symbol, amount]),
      [['USDC', '-25000000']],
    )
    assert.equal(await app.unitsOf(recipient, 'USDC'), before + 25_000_000n)
    assert.equal(await app.unitsOf(user.svm, 'USDC'), 75_000_000n)
    assert.equal(await app.unitsOf(user.svm, 'SOL'), 0n)
    assert.deepEqual(
      done.transactions.map(({ status, tx_hash }) => [status, tx_hash]),
      [['finalized', done.result.tx_hash]],
    )
  })

  test('all of the SOL of a user can be sent, because the sponsor pays the fee', async () => {
    const user = await app.fundedUser('SOL', '2')
    const done = await app.send(user, { symbol: 'SOL', units: '2000000000' })
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(await app.unitsOf(user.svm, 'SOL'), 0n)
  })
})
