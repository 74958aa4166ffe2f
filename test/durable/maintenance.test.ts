/** Retention and audit, which every instance asks for and one of them does. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { upkeep } from '#durable/upkeep.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { silentLog } from '#kernel/log.ts'
import { newUser, openRig, type Rig } from './rig.ts'

describe('maintenance', () => {
  let rig: Rig
  before(async () => {
    rig = await openRig()
  })
  after(async () => rig[Symbol.asyncDispose]())

  test('one of several instances forgets all that is old, and the others do nothing in that interval', async () => {
    const transactions = {
      pool: rig.admin.pool,
      run: rig.admin.transaction,
      runAfter: rig.admin.transactionAfter,
    }
    const maintain = () => upkeep({ transactions, clock, log: silentLog, intervalMs: 60_000 })()
    const left = async () =>
      (
        await rig.rows<{ events: number; replies: number }>(
          `select (select count(*)::integer from outbox) as events, (select count(*)::integer from idempotency) as replies`,
        )
      )[0]
    const addOld = (count: number) =>
      rig.rows(
        `with event as (insert into outbox (user_id, seq, type, body, at)
             select $1, n, 'old', '{}', now() - interval '8 days' from generate_series(1, $2::integer) n)
         insert into idempotency (user_id, key, operation, body_hash, at)
           select $1, n::text, 'old', '', now() - interval '31 days' from generate_series(1, $2::integer) n returning key`,
        newUser(),
        count,
      )
    await addOld(3_500)
    await Promise.all([maintain(), maintain(), maintain()])
    assert.deepEqual(await left(), { events: 0, replies: 0 })
    await addOld(1)
    await maintain()
    assert.deepEqual(await left(), { events: 1, replies: 1 })
    await rig.rows(`update maintenance_run set started_at = now() - interval '2 minutes' returning name`)
    await maintain()
    assert.deepEqual(await left(), { events: 0, replies: 0 })
  })
})
