/** Retention and audit: every instance attempts them and one of them runs them. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createMaintenance } from '#durable/maintenance.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { silentLog } from '#kernel/log.ts'
import { openDatabase } from '#store/database.ts'
import { testDatabase } from '../harness/cluster.ts'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, newUser, openFixture } from './engine-fixture.ts'

describe('maintenance', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  test('one of several instances deletes old rows, and the others do nothing in that interval', async () => {
    const transactions = {
      pool: fixture.admin.pool,
      run: fixture.admin.transaction,
      pipelined: fixture.admin.pipelinedTransaction,
    }
    const maintain = () =>
      createMaintenance({ transactions, clock, log: silentLog, intervalMs: 60_000 }).deleteExpired()
    const left = async () =>
      (
        await fixture.rows<{ events: number; replies: number }>(
          `select (select count(*)::integer from user_event) as events, (select count(*)::integer from idempotency) as replies`,
        )
      )[0]
    const addOld = (count: number) =>
      fixture.rows(
        `with event as (insert into user_event (user_id, seq, type, body, at)
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
    await fixture.rows(`update maintenance_run set started_at = now() - interval '2 minutes' returning name`)
    await maintain()
    assert.deepEqual(await left(), { events: 0, replies: 0 })
  })

  const drifting = async () => {
    const errors: unknown[] = []
    const transactions = {
      pool: fixture.admin.pool,
      run: fixture.admin.transaction,
      pipelined: fixture.admin.pipelinedTransaction,
    }
    const log = { ...silentLog, error: (facts: unknown) => errors.push(facts) }
    const { auditLedger } = createMaintenance({ transactions, clock, log, intervalMs: 60_000 })
    await fixture.rows(
      `insert into account (shard, owner, asset, sub_account, avail) values (0, $1, 'test', 'wallet', 1)`,
      newUser(),
    )
    return { auditLedger, errors }
  }
  const ranBefore = (ago: string, tookMs: number) =>
    fixture.rows(
      'update maintenance_run set started_at = now() - $1::interval, took_ms = $2 returning name',
      ago,
      tookMs,
    )

  test('a slow audit runs less often', async () => {
    const { auditLedger, errors } = await drifting()
    await auditLedger()
    await ranBefore('2 minutes', 30_000)
    await auditLedger()
    const before = errors.length
    await ranBefore('9 minutes', 30_000)
    await auditLedger()
    assert.equal(errors.length, before, 'it pauses for 20 times 30 seconds')
    await ranBefore('11 minutes', 30_000)
    await auditLedger()
    assert.equal(errors.length, before + 1)
    const [row] = await fixture.rows<{ took_ms: bigint }>(
      `select took_ms from maintenance_run where name = 'ledger audit'`,
    )
    assert.ok(Number(row?.took_ms) < 30_000, 'its duration is measured again')
  })

  test('a failed audit pauses for as long as a completed one', async () => {
    await using db = await testDatabase()
    const database = openDatabase({ url: db.url, poolMax: 2, applicationName: 'failing' })
    const { pool, transaction: run, pipelinedTransaction: pipelined } = database
    const slow = openDatabase({ url: db.url, poolMax: 1, applicationName: 'slow' })
    const holder = await slow.pool.connect()
    await holder.query('begin')
    await holder.query('lock table transfer')
    const { auditLedger } = createMaintenance({
      transactions: { pool, run, pipelined },
      clock,
      log: silentLog,
      intervalMs: 1,
    })
    const failed = assert.rejects(auditLedger(), { code: '57014' })
    await eventually(async () => {
      const cancelled = await fixture.rows(
        `select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'failing'
           and wait_event_type = 'Lock' and query_start < clock_timestamp() - interval '300 ms'`,
      )
      return cancelled.length > 0 || undefined
    }, 'the audit is cancelled')
    await failed
    await holder.query('rollback')
    holder.release()
    const runs = async () => {
      const { rows } = await pool.query(`select * from maintenance_run where name = 'ledger audit'`)
      return rows[0] as { started_at: Date; took_ms: bigint }
    }
    const first = await runs()
    assert.ok(Number(first.took_ms) >= 300, String(first.took_ms))
    await auditLedger()
    assert.deepEqual((await runs()).started_at, first.started_at, 'it pauses for 20 times as long')
    await Promise.all([database.close(), slow.close()])
  })

  test('an audit that outlasts the limit of other statements completes', async () => {
    await using db = await testDatabase()
    const database = openDatabase({
      url: db.url,
      poolMax: 2,
      applicationName: 'quick',
      statementTimeoutMs: 100,
    })
    const { pool, transaction: run, pipelinedTransaction: pipelined } = database
    const slow = openDatabase({ url: db.url, poolMax: 1, applicationName: 'slow' })
    const holder = await slow.pool.connect()
    await holder.query('begin')
    await holder.query('lock table transfer')
    const { auditLedger } = createMaintenance({
      transactions: { pool, run, pipelined },
      clock,
      log: silentLog,
      intervalMs: 60_000,
    })
    const done = auditLedger()
    await eventually(async () => {
      const waiting = await fixture.rows(
        `select from pg_stat_activity where application_name = 'quick' and wait_event_type = 'Lock'
           and query_start < clock_timestamp() - interval '300 ms'`,
      )
      return waiting.length > 0 || undefined
    }, 'the audit has waited longer than other statements may')
    await holder.query('rollback')
    holder.release()
    await done
    await Promise.all([database.close(), slow.close()])
  })
})
