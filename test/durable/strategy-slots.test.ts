/** Slots of strategies: each one is recorded once, by the version that was active at it, whatever holds a row up. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { everything } from '#durable/time/money-hold.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { query } from '#store/query.ts'
import type { StrategyExecutionRow, StrategyRow } from '#store/tables/strategies.ts'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'
import {
  gridSlot,
  insertStrategies,
  insertVersions,
  runKindOf,
  slotsOf,
  versionRow,
} from './strategy-fixture.ts'

const hourMs = 3_600_000
const other = { steps: { only: async () => executed } }
const startAt = new Date('2026-03-02T09:00:00Z')
const grid = { everyMs: hourMs, phaseMs: startAt.getTime() }
/** A clock that the test sets. */
const settableClock = (start = startAt): Clock & { set(at: Date): void } => {
  let offsetMs = start.getTime() - Date.now()
  return {
    now: () => new Date(Date.now() + offsetMs),
    set(at) {
      offsetMs = at.getTime() - Date.now()
    },
  }
}

describe('slots of strategies', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const readStrategy = async (id: string) =>
    (await fixture.rows<StrategyRow>('select * from strategy where id = $1', id))[0]!
  const executionsOf = (id: string) =>
    fixture.rows<StrategyExecutionRow>(
      'select * from strategy_execution where strategy_id = $1 order by number',
      id,
    )
  const openInstance = async (clock: Clock, onRun?: Parameters<typeof runKindOf>[0]) => {
    const instance = await fixture.instance(other, { internal: [runKindOf(onRun)], clock })
    const slots = slotsOf(instance, { clock })
    const serving = slots.start()
    return {
      ...instance,
      slots,
      async [Symbol.asyncDispose]() {
        await serving[Symbol.asyncDispose]()
        await instance[Symbol.asyncDispose]()
      },
    }
  }
  const ended = (id: string, count: number) =>
    eventually(async () => {
      const executions = await executionsOf(id)
      const isEnded = executions.length >= count && executions.every(({ ended_at }) => ended_at)
      return isEnded ? executions : undefined
    }, `${count} ended executions`)

  test('a slot becomes one task and one record with the same id, and the strategy moves on', async () => {
    const clock = settableClock()
    const slot = later(startAt, 500)
    const [id] = await insertStrategies(fixture, [
      { grid: { everyMs: hourMs, phaseMs: slot.getTime() }, nextAt: slot },
    ])
    await using instance = await openInstance(clock, async ({ input }) =>
      instance.slots.computeFollowing(String(input.schedule_id)),
    )
    const [execution] = await ended(id!, 1)
    assert.partialDeepStrictEqual(execution, {
      version: 1,
      number: 1,
      execution_type: 'scheduled',
      mode: 'paper',
      status: 'completed',
      skipped_slots: 0,
    })
    assert.deepEqual(execution?.slot, slot)
    const [task] = await fixture.rows<{ input: object }>('select * from task where id = $1', execution!.id)
    assert.deepEqual(task?.input, { schedule_id: id, version: 1, slot: slot.toISOString(), priority: 1 })
    const strategy = await readStrategy(id!)
    // A run is counted at its end, with what became of it.
    assert.partialDeepStrictEqual(strategy, {
      run_count: 0,
      execution_count: 1,
      skipped_count: 0,
      status: 'active',
    })
    assert.deepEqual(strategy.next_at, later(slot, hourMs))
    assert.deepEqual(strategy.following_at, later(slot, 2 * hourMs))
  })

  test('after an outage the newest slot is made up for, and one record counts the older ones', async () => {
    const clock = settableClock(later(startAt, 5 * hourMs + 60_000 * 5))
    const [recent, skipping] = await insertStrategies(fixture, [
      { grid, nextAt: startAt },
      { grid, nextAt: startAt, on_missed: 'skip' },
    ])
    await using _instance = await openInstance(clock)
    const executions = await ended(recent!, 2)
    assert.deepEqual(
      executions.map(({ execution_type, status, skip_reason, skipped_slots, first_slot, slot }) => ({
        execution_type,
        status,
        skip_reason,
        skipped_slots,
        first_slot,
        slot,
      })),
      [
        {
          execution_type: 'scheduled',
          status: 'cancelled',
          skip_reason: 'missed',
          skipped_slots: 5,
          first_slot: startAt,
          slot: later(startAt, 4 * hourMs),
        },
        {
          execution_type: 'catch_up',
          status: 'completed',
          skip_reason: null,
          skipped_slots: 0,
          first_slot: null,
          slot: later(startAt, 5 * hourMs),
        },
      ],
    )
    const [only, ...more] = await ended(skipping!, 1)
    assert.partialDeepStrictEqual(only, { skip_reason: 'missed', skipped_slots: 6 })
    assert.equal(more.length, 0)
    assert.equal((await readStrategy(skipping!)).skipped_count, 6)
  })

  test('a strategy that is armed again after its clock stepped back runs no slot again', async () => {
    const clock = settableClock()
    const [id] = await insertStrategies(fixture, [{ grid, nextAt: startAt }])
    await using instance = await openInstance(clock)
    await ended(id!, 1)
    clock.set(later(startAt, -500))
    const { slots, database } = instance
    const next = await database.transaction(async (tx) => {
      await slots.settle(tx, id!)
      return slots.arm(tx, id!)
    })
    assert.deepEqual(next, startAt)
    slots.announce()
    await eventually(
      async () => (await readStrategy(id!)).next_at! > startAt || undefined,
      'the strategy moves on',
    )
    assert.equal((await executionsOf(id!)).length, 1)
    assert.partialDeepStrictEqual(await readStrategy(id!), { execution_count: 1, skipped_count: 0 })
    assert.equal((await fixture.rows('select 1 from task where input @> $1', { schedule_id: id })).length, 1)
  })

  test('only an active strategy is paused', async () => {
    const clock = settableClock()
    const [active, draft] = await insertStrategies(fixture, [
      { grid, nextAt: later(startAt, hourMs) },
      { grid, nextAt: null },
    ])
    await using instance = await fixture.instance(other, { internal: [runKindOf()], clock })
    const slots = slotsOf(instance, { clock })
    const pause = (id: string) =>
      instance.database.transaction((tx) => slots.disarm(tx, id, { status: 'paused', reason: 'test' }))
    assert.equal(await pause(active!), true)
    assert.equal(await pause(draft!), false)
    assert.partialDeepStrictEqual(await readStrategy(active!), { status: 'paused', next_at: null })
    assert.partialDeepStrictEqual(await readStrategy(draft!), { status: 'draft', status_reason: null })
  })

  test('a slot that meets a run is skipped, and the next one runs', async () => {
    const clock = settableClock()
    const [id] = await insertStrategies(fixture, [{ grid, nextAt: startAt }])
    const runs = { first: Promise.withResolvers<void>(), count: 0 }
    await using instance = await openInstance(clock, async () => {
      if (++runs.count === 1) await runs.first.promise
    })
    await eventually(async () => runs.count === 1 || undefined, 'the first run')
    clock.set(later(startAt, hourMs))
    instance.taskEngine.announceSlots()
    await eventually(async () => (await executionsOf(id!))[1], 'the second record')
    runs.first.resolve()
    await ended(id!, 2)
    clock.set(later(startAt, 2 * hourMs))
    instance.taskEngine.announceSlots()
    const executions = await ended(id!, 3)
    assert.deepEqual(
      executions.map(({ status, skip_reason }) => skip_reason ?? status),
      ['completed', 'overlap', 'completed'],
    )
    assert.partialDeepStrictEqual(await readStrategy(id!), {
      status: 'active',
      execution_count: 3,
      skipped_count: 1,
    })
  })

  test('edits and stops beside due slots: no slot twice, none by a version that was not active, none after the stop', async () => {
    const everyMs = 400
    const clock = settableClock()
    const [id] = await insertStrategies(fixture, [{ grid, nextAt: null }])
    await using one = await openInstance(clock)
    await using two = await openInstance(clock)
    const versions = [{ version: 1, from: 0 }]
    const edits = 20
    for (let version = 2; version <= edits + 1; version++) {
      const { slots, database } = version % 2 === 0 ? one : two
      await database.transaction(async (tx) => {
        await slots.settle(tx, id!)
        const calendar = { everyMs, phaseMs: startAt.getTime() + version }
        await insertVersions({ admin: { pool: tx } }, [
          { ...versionRow({ version, calendar }), strategy_id: id! },
        ])
        await query(tx, 'update strategy set version = $2 where id = $1', [id, version])
        const next = await slots.arm(tx, id!)
        versions.push({ version, from: next!.getTime() })
      })
      slots.announce()
      await eventually(
        async () => clock.now().getTime() >= versions.at(-1)!.from || undefined,
        'the slot',
        5_000,
      )
    }
    await one.database.transaction((tx) => one.slots.disarm(tx, id!, { status: 'disabled', reason: null }))
    const before = await executionsOf(id!)
    await two.database.transaction((tx) => two.slots.settle(tx, id!))
    one.slots.announce()
    await ended(id!, before.length)
    const executions = await executionsOf(id!)
    assert.equal(executions.length, before.length)
    assert.ok(executions.length >= edits)
    const covered = new Set<number>()
    for (const { slot, version } of executions) {
      const ms = slot!.getTime()
      assert.ok(!covered.has(ms), `the slot ${slot!.toISOString()} has two records`)
      covered.add(ms)
      assert.equal((ms - startAt.getTime() - version) % everyMs, 0, 'a slot of another version')
      const next = versions.find((each) => each.version === version + 1)
      assert.ok(ms >= versions.find((each) => each.version === version)!.from)
      assert.ok(!next || ms < next.from, `version ${version} ran a slot after its end`)
    }
    assert.partialDeepStrictEqual(await readStrategy(id!), { status: 'disabled', next_at: null })
  })

  test('a row that cannot be served and a user whose rows are locked hold up nobody', async () => {
    const clock = settableClock()
    const locked = newUser()
    const refused = newUser()
    const user = newUser()
    const [unreadable, ofLocked, ofRefused, ...rest] = await insertStrategies(fixture, [
      { grid: { nothing: true }, nextAt: later(startAt, -4) },
      { grid, nextAt: later(startAt, -3), userId: locked },
      { grid, nextAt: later(startAt, -2), userId: refused },
      ...Array.from({ length: 50 }, () => ({ grid, nextAt: startAt, userId: user })),
    ])
    await fixture.rows(
      `insert into user_event_seq (user_id, seq) values ($1, 0) on conflict do nothing`,
      locked,
    )
    await fixture.rows(`create function refuse_task() returns trigger language plpgsql as $$ begin
      if new.user_id = '${refused}' then raise exception 'refused by the test'; end if; return new; end $$`)
    await fixture.rows(
      'create trigger refuse before insert on task for each row execute function refuse_task()',
    )
    {
      const locks = await fixture.lockRows(
        'select 1 from user_event_seq where user_id = $1 for update',
        locked,
      )
      await using _instance = await openInstance(clock)
      for (const id of rest) await ended(id, 1)
      for (const id of [unreadable!, ofLocked!, ofRefused!]) {
        assert.deepEqual(await executionsOf(id), [])
        assert.ok((await readStrategy(id)).next_at! <= startAt, 'its slot is left')
      }
      locks[Symbol.dispose]()
      await ended(ofLocked!, 1)
    }
    await fixture.rows('drop trigger refuse on task')
    await using _instance = await openInstance(clock)
    await ended(ofRefused!, 1)
  })

  test('slots wait while money is on hold for a comparison, and are skipped while it waits for an operator', async () => {
    const clock = settableClock()
    const [id] = await insertStrategies(fixture, [{ grid, nextAt: startAt, max_runs: 1 }])
    await using instance = await fixture.instance(other, { internal: [runKindOf()], clock })
    const { holds, announceSlots, isOnDuty } = instance.taskEngine
    await eventually(async () => isOnDuty() || undefined, 'it is on duty')
    const hold = { scope: everything, since: startAt, detail: {} }
    holds.setLocal({ ...hold, reason: 'no_memory' })
    let polls = 0
    const now = () => {
      polls += 1
      return clock.now()
    }
    await using _serving = slotsOf(instance, { clock: { now } }).start()
    await eventually(async () => {
      announceSlots()
      return polls > 2 || undefined
    }, 'polls that have ended')
    assert.deepEqual((await readStrategy(id!)).next_at, startAt)
    holds.setLocal({ ...hold, reason: 'went_back' })
    announceSlots()
    const [frozen] = await ended(id!, 1)
    assert.partialDeepStrictEqual(frozen, { status: 'cancelled', skip_reason: 'frozen', slot: startAt })
    assert.partialDeepStrictEqual(await readStrategy(id!), {
      run_count: 0,
      skipped_count: 1,
      status: 'active',
    })
    assert.deepEqual(await fixture.rows('select 1 from task where input @> $1', { schedule_id: id }), [])
    clock.set(later(startAt, hourMs))
    holds.clearLocal(everything)
    assert.equal((await ended(id!, 2))[1]?.status, 'completed')
  })

  test('an instance without the kind leaves the slots to the others', async () => {
    const clock = settableClock()
    await using old = await fixture.instance(other, { clock })
    await eventually(async () => old.taskEngine.isOnDuty() || undefined, 'the old one is on duty')
    const serving = slotsOf(old, { clock }).start()
    const [id] = await insertStrategies(fixture, [{ grid, nextAt: startAt }])
    old.taskEngine.announceSlots()
    {
      await using _new = await openInstance(clock)
      assert.equal((await ended(id!, 1)).length, 1)
    }
    await serving[Symbol.asyncDispose]()
  })

  test('newer zone data moves the slots that were computed with older data, and no older process moves them back', async () => {
    const clock = settableClock()
    const wrong = later(startAt, 30 * 60_000)
    const [id] = await insertStrategies(fixture, [{ grid, nextAt: wrong }])
    await using instance = await fixture.instance(other, { internal: [runKindOf()], clock })
    const { zoneDataJob } = slotsOf(instance, { clock, tzVersion: '2026c' })
    const isRightZone = 'select tz_version from strategy where id = $1'
    assert.equal(await zoneDataJob.runBatch(), false)
    assert.deepEqual((await readStrategy(id!)).next_at, gridSlot(grid, clock.now()))
    assert.deepEqual(await fixture.rows(isRightZone, id), [{ tz_version: '2026c' }])
    const older = slotsOf(instance, { clock, tzVersion: '2026b' })
    await older.zoneDataJob.runBatch()
    await older.computeFollowing(id!)
    assert.partialDeepStrictEqual(await readStrategy(id!), { tz_version: '2026c', following_at: null })
    await slotsOf(instance, { clock, tzVersion: '2026c' }).computeFollowing(id!)
    assert.deepEqual((await readStrategy(id!)).following_at, later(startAt, 2 * hourMs))
  })
})
