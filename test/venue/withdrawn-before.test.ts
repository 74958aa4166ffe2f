/** Withdrawals at the venue that the database does not know, before and after an operator has looked at them. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { addUnfrozen } from '#engines/venue/records/record-store.ts'
import { withdrawnBefore } from '#features/perp/forgotten-withdrawal.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { query } from '#store/query.ts'
import type { LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { ownDatabase } from '../harness/own-database.ts'

describe('a withdrawal that the database has forgotten', () => {
  let home: Awaited<ReturnType<typeof ownDatabase>>
  before(async () => {
    home = await ownDatabase()
  })
  after(() => home?.[Symbol.asyncDispose]())

  const paidMs = Date.now() - 60_000
  const paid = { type: 'withdraw', amountUsd: '9', feeUsd: '1', nonce: paidMs, hash: '0xpaid', atMs: paidMs }
  const isStopped = async (userId: string, amount_usd = '10') => {
    const venue = { ledgerSince: async () => [paid as LedgerUpdate] }
    const data = { account: '0xaccount', amount_usd, since_ms: paidMs }
    return (await withdrawnBefore({ db: home.database.pool, venue }, { userId, data })) !== undefined
  }
  const newUser = () => uuidv7(new Date(), systemRandom)
  /** What the end of a task stores, as far as the search reads it. */
  const storeTask = (userId: string, completedAt: Date | null) =>
    query(home.database.pool, `insert into task select * from jsonb_populate_record(null::task, $1::jsonb)`, [
      JSON.stringify({
        id: newUser(),
        shard: 0,
        user_id: userId,
        kind: 'perp_withdraw',
        kind_version: 1,
        status: completedAt ? 'completed' : 'running',
        state: completedAt ? 'done' : 'review',
        outcome: completedAt ? 'executed' : 'unknown',
        step: 'confirm',
        data: { unclear_before: '0xpaid' },
        input: {},
        attempts: 0,
        version: 1,
        cancel_requested: false,
        deadline: new Date(),
        created_at: new Date(),
        updated_at: new Date(),
        completed_at: completedAt,
      }),
    ])

  test('stops an equal one, and no other', async () => {
    assert.equal(await isStopped(newUser()), true)
    assert.equal(await isStopped(newUser(), '11'), false)
  })

  test('stops none once an operator has ended the task that it stopped', async () => {
    const userId = newUser()
    await storeTask(userId, null)
    assert.equal(await isStopped(userId), true)
    await storeTask(userId, new Date(paidMs - 1_000))
    assert.equal(await isStopped(userId), true, 'the end was before the withdrawal')
    await storeTask(userId, new Date())
    assert.equal(await isStopped(userId), false)
  })

  test('stops none once an operator has unfrozen the account', async () => {
    const userId = newUser()
    const reason = 'unfrozen by ann: the user withdrew'
    await home.database.transaction((tx) =>
      addUnfrozen(tx, { user_id: userId }, { reason, atMs: Date.now() }),
    )
    assert.equal(await isStopped(userId), false)
  })
})
