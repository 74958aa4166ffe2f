/** Jobs that one instance runs for all of them: claims, batches, take-over; and the retention. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createMaintenance, type MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import { dayMs, deletionJobs, logDeletions } from '#durable/upkeep/retention.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { silentLog } from '#kernel/log.ts'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, newUser, openFixture } from './engine-fixture.ts'

describe('maintenance', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const instance = (everyMs = 60_000) =>
    createMaintenance({ pool: fixture.admin.pool, instanceId: newUser(), log: silentLog, everyMs })
  const set = async (name: string, columns: string) =>
    assert.equal(
      (await fixture.rows(`update maintenance_run set ${columns} where name = $1 returning name`, name))
        .length,
      1,
    )
  /** A job whose batches wait for `go`, each for one call. */
  const steppedJob = (name: string, batches: number) => {
    const starts: ((fails?: Error) => void)[] = []
    let left = batches
    const job: MaintenanceJob = {
      name,
      async runBatch() {
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        starts.push((error) => (error ? reject(error) : resolve()))
        await promise
        return --left > 0
      },
    }
    return {
      job,
      begun: () => starts.length,
      go(fails?: Error) {
        for (const start of starts) start(fails)
      },
      waitFor: (count: number) =>
        eventually(async () => starts.length >= count || undefined, `batch ${count} of ${name}`),
    }
  }
  const countedJob = (name: string) => {
    let runs = 0
    const job: MaintenanceJob = {
      name,
      async runBatch() {
        runs++
        return false
      },
    }
    return { job, runs: () => runs }
  }
  const runOf = async (name: string) =>
    (
      await fixture.rows<{ run: bigint; has_ended: boolean; is_leased: boolean }>(
        `select run, ended_at is not null as has_ended, lease_until > clock_timestamp() as is_leased
         from maintenance_run where name = $1`,
        name,
      )
    )[0]!

  test('one instance runs a job to its end, and no other one begins it meanwhile or in the same interval', async () => {
    const long = steppedJob('long', 2)
    const first = instance().run([long.job])
    await long.waitFor(1)
    await set('long', `started_at = clock_timestamp() - interval '1 hour'`)
    const other = countedJob('long')
    await Promise.all([instance().run([other.job]), instance().run([other.job])])
    long.go()
    await long.waitFor(2)
    await instance().run([other.job])
    long.go()
    await first
    assert.deepEqual(await runOf('long'), { run: 1n, has_ended: true, is_leased: null })
    await set('long', 'started_at = clock_timestamp()')
    await instance().run([other.job])
    assert.equal(other.runs(), 0)
    await set('long', `started_at = clock_timestamp() - interval '1 minute'`)
    await instance().run([other.job])
    assert.equal(other.runs(), 1)
  })

  test('the run of an instance that died is taken over, and the earlier one ends without a trace', async () => {
    const dead = steppedJob('dying', 3)
    const stopped = instance().run([dead.job])
    await dead.waitFor(1)
    await set('dying', `lease_until = clock_timestamp() - interval '1 millisecond'`)
    const heir = steppedJob('dying', 1)
    const second = instance().run([heir.job])
    await heir.waitFor(1)
    dead.go()
    await stopped
    assert.equal(dead.begun(), 1)
    assert.deepEqual(await runOf('dying'), { run: 2n, has_ended: false, is_leased: true })
    heir.go()
    await second
    assert.equal((await runOf('dying')).has_ended, true)
  })

  test('a failed run reports its error, has not ended, and runs again in the next interval', async () => {
    const failing = steppedJob('failing', 1)
    const failed = assert.rejects(instance().run([failing.job]), /out of order/)
    await failing.waitFor(1)
    failing.go(new Error('out of order'))
    await failed
    assert.deepEqual(await runOf('failing'), { run: 1n, has_ended: false, is_leased: null })
    const again = countedJob('failing')
    await instance().run([again.job])
    assert.equal(again.runs(), 0)
    await set('failing', `started_at = clock_timestamp() - interval '1 minute'`)
    await instance().run([again.job])
    assert.equal(again.runs(), 1)
  })

  test('a start or a lease that lies in the future, because the clock was set back, stops no job', async () => {
    const job = steppedJob('stepping', 1)
    const first = instance().run([job.job])
    await job.waitFor(1)
    await set('stepping', `lease_until = clock_timestamp() + interval '1 hour'`)
    const heir = countedJob('stepping')
    await instance().run([heir.job])
    assert.equal(heir.runs(), 1)
    job.go()
    await first
    await set('stepping', `started_at = clock_timestamp() + interval '1 hour'`)
    await instance().run([heir.job])
    assert.equal(heir.runs(), 2)
  })

  test('a long job delays no other one, and a stop ends it after its batch for another instance to go on', async () => {
    const long = steppedJob('endless', 2)
    const quick = countedJob('quick')
    const started = instance(20).start([long.job, quick.job])
    await long.waitFor(1)
    await eventually(async () => quick.runs() >= 3 || undefined, 'the other job runs meanwhile')
    const stop = started[Symbol.asyncDispose]()
    long.go()
    await stop
    assert.equal(long.begun(), 1)
    const heir = countedJob('endless')
    await instance().run([heir.job])
    assert.equal(heir.runs(), 1)
  })

  test('everything that is older than its retention is deleted, in batches', async () => {
    const left = async () =>
      (
        await fixture.rows<{ events: number; replies: number }>(
          `select (select count(*)::integer from user_event) as events, (select count(*)::integer from idempotency) as replies`,
        )
      )[0]
    const user = newUser()
    await fixture.rows(
      `with event as (insert into user_event (user_id, seq, type, body, at)
           select $1, n, 'old', '{}', now() - interval '8 days' from generate_series(1, 3500) n)
       insert into idempotency (user_id, key, operation, body_hash, at)
         select $1, n::text, 'old', '', now() - interval '31 days' from generate_series(1, 3500) n returning key`,
      user,
    )
    await fixture.rows(
      `with event as (insert into user_event (user_id, seq, type, body, at)
           values ($1, 3501, 'new', '{}', now() - interval '6 days'))
       insert into idempotency (user_id, key, operation, body_hash, at)
         values ($1, 'new', 'new', '', now() - interval '29 days') returning key`,
      user,
    )
    const ages = { eventsMs: 7 * dayMs, repliesMs: 30 * dayMs }
    await instance().run(deletionJobs({ pool: fixture.admin.pool, clock }, logDeletions(ages)))
    assert.deepEqual(await left(), { events: 1, replies: 1 })
  })
})
