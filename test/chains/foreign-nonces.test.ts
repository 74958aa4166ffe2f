/** Another program sends from the sponsor's account as well: its nonces are taken, and the money still moves once. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../harness/gateway.ts'
import { type ChainsApp, createChainsApp } from './chains-app.ts'

describe('a sponsor whose key another program uses too', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp()
  })
  after(() => app?.[Symbol.asyncDispose]())

  /** An empty transaction from the sponsor's own account that the gateway never stored. */
  const sendForeign = async (signer: string, feeTimes = 1n): Promise<void> => {
    const { chain, sponsor } = app.main.base
    const nonce = await chain.transactionCount(signer, 'latest')
    let { raw } = await sponsor.fillNonce(signer, nonce)
    if (feeTimes > 1n) {
      const fees = await sponsor.fees()
      const dearer = { maxFeeWei: fees.maxFeeWei * feeTimes, priorityWei: fees.priorityWei * feeTimes }
      raw = (await sponsor.replace(raw, signer, { kind: 'cancel', fees: dearer })).raw
    }
    await chain.sendRaw(raw)
  }
  const pooled = async () => Number(((await app.rpc('txpool_status')) as { pending: string }).pending)

  test('a nonce that foreign bytes took is replaced at once, not after the deadline', async () => {
    const user = await app.fundedUser()
    await app.rpc('evm_setAutomine', [false])
    const pendingDeposit = app.call('earn_deposit', { amount_usdc: '100' }, user, { timeoutMs: 30_000 })
    await eventually(async () => ((await pooled()) > 0 ? true : undefined), 'the deposit waits in the pool')
    const { tasks } = await app.main.taskEngine.tasks.list(user.id, { skip: 0, limit: 1 })
    const { rows } = await app.database.pool.query(
      'select c.signer from tx_attempt c join effect e on e.id = c.effect_id where e.task_id = $1',
      [tasks[0]!.id],
    )
    await sendForeign(rows[0].signer, 20n)
    await app.rpc('evm_mine')
    await app.rpc('evm_setAutomine', [true])
    const done = await pendingDeposit
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    const [first, second] = done.transactions
    assert.equal(done.transactions.length, 2)
    assert.ok(second!.nonce > first!.nonce)
    assert.equal(done.result.tx_hash, second!.tx_hash)
    assert.equal(await app.flows(user), 1)
    assert.equal((await app.main.vault.account(user.evm)).sharesUnits, BigInt(done.result.shares_delta))
  })

  test('deposits continue while each sponsor account sends a foreign transaction every second', async () => {
    const user = await app.fundedUser()
    const stop = new AbortController()
    let sent = 0
    const foreign = (async () => {
      while (!stop.signal.aborted) {
        for (const signer of app.main.base.sponsor.signers) await sendForeign(signer)
        sent += 1
        await delay(1_000, undefined, { signal: stop.signal }).catch(() => undefined)
      }
    })()
    try {
      for (let n = 0; n < 16; n++) {
        const done = await app.call('earn_deposit', { amount_usdc: '10' }, user, { timeoutMs: 60_000 })
        assert.equal(done.outcome, 'executed', JSON.stringify(done))
      }
    } finally {
      stop.abort()
      await foreign
    }
    assert.ok(sent > 0)
    assert.equal(await app.flows(user), 16)
    assert.equal((await app.main.vault.account(user.evm)).cashUnits, 10_000_000_000n - 160_000_000n)
  })
})
