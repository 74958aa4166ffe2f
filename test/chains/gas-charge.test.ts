/** A batch that is signed later than it was admitted costs the sponsor no more than twice what its user was charged. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { worldKey, worldKeyId } from '#config-safety.ts'
import { createEnvKek, createKeyEncryptionKeys } from '#engines/custody/key-encryption-keys.ts'
import { systemRandom } from '#kernel/id.ts'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { type Answer, baseId, type ChainsApp, createChainsApp, type User } from './chains-app.ts'

const gwei = 1_000_000_000n
const custody = { isAway: false }
const keys = createKeyEncryptionKeys(createEnvKek(worldKeyId, worldKey, systemRandom))
const keysThatVanish = {
  ...keys,
  find: (id: string) => (custody.isAway ? undefined : keys.find(id)),
}

describe('a fee that rises between the admission and the signature', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp({ keyEncryptionKeys: keysThatVanish })
  })
  after(() => app?.[Symbol.asyncDispose]())
  afterEach(() => {
    custody.isAway = false
  })

  const setBaseFee = async (tenthsOfGwei: bigint) => {
    const wei = (gwei * tenthsOfGwei) / 10n
    await app.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${wei.toString(16)}`])
    await app.rpc('evm_mine')
    await eventually(async () => {
      const { maxFeeWei } = await app.main.base.sponsor.fees()
      return maxFeeWei >= wei && maxFeeWei <= 2n * wei + gwei / 10n
    }, 'the fees of this base fee')
  }
  const noncesTaken = () =>
    query(app.database.pool, 'select sum(next)::text as taken from nonce_sequence where chain = $1', [baseId])
  const chargeOf = async (taskId: string) => {
    const [row] = await query<{ wei: string; is_final: boolean }>(
      app.database.pool,
      'select wei::text, is_final from sponsor_charge where task_id = $1',
      [taskId],
    )
    return row
  }
  /** Accepted at a base fee of 0.2 gwei, and signed at another one, which is kept up, as it would fall with each empty block. */
  const signedAt = async (tenthsOfGwei: bigint, user: User, operation: string, input: object) => {
    await setBaseFee(2n)
    custody.isAway = true
    const accepted = await app.call(operation, input, user, { wait: false })
    assert.equal((await chargeOf(accepted.task_id))?.is_final, false)
    await setBaseFee(tenthsOfGwei)
    custody.isAway = false
    return eventually(async () => {
      await setBaseFee(tenthsOfGwei)
      const task = await app.main.taskEngine.tasks.find(user.id, accepted.task_id)
      return task.completed_at ? task : undefined
    }, 'the end of the task')
  }
  const deposit = { amount_usdc: '10' }

  test('to more than twice the charge signs nothing, takes no nonce and releases everything', async () => {
    const user = await app.fundedUser()
    const first = await app.call('earn_deposit', deposit, user)
    assert.equal(first.outcome, 'executed')
    const before = await noncesTaken()
    const done = await signedAt(100n, user, 'earn_deposit', deposit)
    assert.deepEqual([done.status, done.outcome], ['failed', 'not_executed'], JSON.stringify(done))
    const { code, message } = done.error as Answer['error']
    assert.equal(code, 'expired')
    assert.match(message, /more than twice what was reserved for it; nothing was sent/)
    assert.deepEqual(await noncesTaken(), before)
    assert.deepEqual(await chargeOf(done.id), { wei: '0', is_final: true })
    const effects = await query(app.database.pool, 'select 1 from effect where task_id = $1', [done.id])
    assert.deepEqual(effects, [])
    const { heldUnits } = await app.main.taskEngine.ledger.balance(app.database.pool, {
      owner: user.id,
      asset: `${baseId}:${app.main.usdc.toLowerCase()}`,
      subAccount: 'wallet',
    })
    assert.equal(heldUnits, 0n)
    assert.equal((await app.call('earn_deposit', deposit, user)).outcome, 'executed')
    assert.equal(await app.flows(user), 2)
  })

  test('to less than twice the charge changes nothing', async () => {
    const user = await app.fundedUser()
    const done = await signedAt(3n, user, 'earn_deposit', deposit)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    assert.equal(await app.flows(user), 1)
  })

  test('keeps nobody from withdrawing everything', async () => {
    const user = await app.fundedUser()
    const { result } = await app.call('earn_deposit', deposit, user)
    const done = await signedAt(100n, user, 'earn_withdraw', { position_id: result.position_id })
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    assert.equal(await app.flows(user), 2)
  })
})
