/** Leases when steps are long, rows are locked and heartbeats are missed. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import {
  type EngineFixture,
  executed,
  type Instance,
  newUser,
  openFixture,
  type TestKind,
  workFor,
} from './engine-fixture.ts'

const leaseMs = 600

/** A step that lasts this many leases; counts its runs by task. */
function longSteps(leases: number) {
  const runs = new Map<string, AbortSignal[]>()
  const kind: TestKind = {
    steps: {
      long: async ({ id }, { signal }) => {
        runs.set(id, [...(runs.get(id) ?? []), signal])
        await workFor(leases * leaseMs)
        return executed
      },
    },
  }
  const total = () => [...runs.values()].reduce((sum, each) => sum + each.length, 0)
  return { kind, runs, total }
}

/** Takes the only connection of its heartbeats. */
async function withholdHeartbeats({ heartbeats }: Instance) {
  const withheld = new DisposableStack()
  withheld.adopt(await heartbeats.pool.connect(), (client) => client.release())
  return withheld
}

describe('leases', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  test('steps longer than the lease run once, on two instances', async () => {
    const long = longSteps(2.5)
    await using a = await fixture.instance(long.kind, { leaseMs })
    await using b = await fixture.instance(long.kind, { leaseMs })
    const all = Array.from({ length: 12 }, (_, n) => (n % 2 ? a : b).run(newUser()))
    for (const { outcome } of await Promise.all(all)) assert.equal(outcome, 'executed')
    assert.equal(long.total(), 12)
  })

  test('a heartbeat that is missed within the lease loses nothing', async () => {
    const long = longSteps(3)
    await using a = await fixture.instance(long.kind, { leaseMs })
    await using _b = await fixture.instance(long.kind, { leaseMs })
    const running = a.run(newUser())
    await eventually(async () => long.total() > 0 || undefined, 'the step has begun')
    using withheld = await withholdHeartbeats(a)
    await workFor(0.5 * leaseMs)
    withheld.dispose()
    assert.equal((await running).outcome, 'executed')
    assert.equal(long.total(), 1)
  })

  test('an instance alone keeps its tasks, however late its heartbeat is', async () => {
    const long = longSteps(3)
    await using a = await fixture.instance(long.kind, { leaseMs })
    const running = a.run(newUser())
    await eventually(async () => long.total() > 0 || undefined, 'the step has begun')
    using withheld = await withholdHeartbeats(a)
    await workFor(2 * leaseMs)
    withheld.dispose()
    assert.equal((await running).outcome, 'executed')
    assert.equal(long.total(), 1)
  })

  test('an instance whose lease has ended loses its tasks, commits nothing to them, and begins anew', async () => {
    const long = longSteps(2.5)
    await using a = await fixture.instance(long.kind, { leaseMs })
    const { task_id } = await a.run(newUser(), { timeoutMs: 0 })
    await eventually(async () => long.total() > 0 || undefined, 'the step has begun')
    await using b = await fixture.instance(long.kind, { leaseMs })
    using withheld = await withholdHeartbeats(a)
    const lost = await fixture.readTask(task_id)
    const taken = await eventually(async () => {
      const now = await fixture.readTask(task_id)
      return now.owner !== lost.owner && now.owner !== null ? now : undefined
    }, 'the other one has claimed the task')
    assert.equal(taken.version, lost.version + 1)
    // The first run ends before the second one, with its lease gone and its heartbeats still away.
    await workFor(1.5 * leaseMs)
    assert.deepEqual(await fixture.readTask(task_id), taken)
    assert.equal(
      (await a.run(newUser(), { timeoutMs: 0 })).status,
      'pending',
      'it takes no task without a lease',
    )
    withheld.dispose()
    assert.equal((await fixture.waitForEnd(task_id)).outcome, 'executed')
    assert.equal(long.runs.get(task_id)?.length, 2)
    await eventually(
      async () => (await fixture.rows('select 1 from instance')).length === 2 || undefined,
      'it has registered again',
    )
    const [, { outcome }] = await Promise.all([b.run(newUser()), a.run(newUser())])
    assert.equal(outcome, 'executed')
  })

  test('a run whose instance lost its lease is aborted by the next heartbeat', async () => {
    const long = longSteps(8)
    await using a = await fixture.instance(long.kind, { leaseMs })
    await a.run(newUser(), { timeoutMs: 0 })
    await eventually(async () => long.total() > 0 || undefined, 'the step has begun')
    await fixture.rows('delete from instance returning id')
    const [[signal]] = [...long.runs.values()] as [[AbortSignal]]
    await eventually(async () => signal.aborted || undefined, 'the run is aborted', leaseMs)
    await eventually(
      async () => long.total() === 2 || undefined,
      'the instance has claimed the task anew',
      leaseMs,
    )
  })

  test('a task that its own instance claims again runs on under the new claim only', async () => {
    const long = longSteps(2.5)
    await using a = await fixture.instance(long.kind, { leaseMs })
    const running = a.run(newUser(), { timeoutMs: 16 * leaseMs })
    await eventually(async () => long.total() > 0 || undefined, 'the step has begun')
    const taskId = [...long.runs.keys()][0]!
    // A heartbeat before the claim would abort the run as well.
    using withheld = await withholdHeartbeats(a)
    await fixture.rows('update task_queue set owner = null where task_id = $1 returning 1', taskId)
    await workFor(leaseMs)
    withheld.dispose()
    assert.equal((await running).outcome, 'executed')
    assert.deepEqual(
      long.runs.get(taskId)?.map(({ aborted }) => aborted),
      [true, false],
      'one run was aborted, the other one was not',
    )
  })

  test('a run that has lost its task to another instance is aborted, and its result is discarded', async () => {
    const long = longSteps(4)
    await using a = await fixture.instance(long.kind, { leaseMs })
    const running = a.run(newUser())
    await eventually(async () => long.total() > 0 || undefined, 'the step has begun')
    const [taskId, [signal]] = [...long.runs][0]! as [string, [AbortSignal]]
    const other = newUser()
    const taken = await fixture.rows(
      `with owned as (update task_queue set owner = $2 where task_id = $1)
       update task set version = version + 1 where id = $1 returning id`,
      taskId,
      other,
    )
    assert.equal(taken.length, 1)
    await eventually(async () => signal.aborted || undefined, 'the run is aborted', leaseMs * 2)
    assert.equal((await running).outcome, 'executed', 'the other one has no lease, so the task was freed')
    assert.equal(long.total(), 2)
  })

  test('a locked row costs no instance its lease', async () => {
    const long = longSteps(4)
    await using a = await fixture.instance(long.kind, { leaseMs })
    await using _b = await fixture.instance(long.kind, { leaseMs })
    const all = Array.from({ length: 6 }, () => a.run(newUser()))
    await eventually(async () => long.total() === 6 || undefined, 'all of them have begun')
    const [taskId] = [...long.runs.keys()] as [string]
    const orphan = newUser()
    await fixture.rows(
      `insert into task_queue (task_id, user_id, kind, priority, run_at, owner) values ($1, $1, 'other@1', 1, now(), $1)
       returning 1`,
      orphan,
    )
    {
      using _task = await fixture.lockRows('select 1 from task where id = $1 for update', taskId)
      using _queued = await fixture.lockRows('select 1 from task_queue where task_id = $1 for update', taskId)
      using _orphan = await fixture.lockRows('select 1 from task_queue where task_id = $1 for update', orphan)
      await workFor(3 * leaseMs)
      const renewed = await fixture.rows('select 1 from instance where lease_until > clock_timestamp()')
      assert.equal(renewed.length, 2, 'both leases were renewed meanwhile')
    }
    for (const { outcome } of await Promise.all(all)) assert.equal(outcome, 'executed')
    assert.equal(long.total(), 6)
    await eventually(
      async () =>
        (await fixture.rows('select 1 from task_queue where owner = $1', orphan)).length === 0 || undefined,
      'the task of the instance that is not alive is freed once its row is not locked',
    )
    await fixture.rows('delete from task_queue where task_id = $1 returning 1', orphan)
  })

  test('a task whose instance does not run it is released', async () => {
    const long = longSteps(0)
    await using a = await fixture.instance(long.kind, { leaseMs })
    const self = await eventually(
      async () => (await fixture.rows<{ id: string }>('select id from instance'))[0],
      'its first heartbeat',
    )
    const stray = newUser()
    await fixture.rows(
      `insert into task_queue (task_id, user_id, kind, priority, run_at, owner) values ($1, $1, 'other@1', 1, now(), $2)
       returning 1`,
      stray,
      self.id,
    )
    await eventually(
      async () =>
        (await fixture.rows('select 1 from task_queue where owner is null')).length === 1 || undefined,
      'it is free for others',
      2 * leaseMs,
    )
    await fixture.rows('delete from task_queue where task_id = $1 returning 1', stray)
    assert.equal((await a.run(newUser())).outcome, 'executed')
  })

  test('leases outlast work that takes every connection of the pool', async () => {
    const long = longSteps(3)
    await using a = await fixture.instance(long.kind, { leaseMs, poolMax: 4 })
    await using b = await fixture.instance(long.kind, { leaseMs })
    const all = Array.from({ length: 6 }, () => a.run(newUser(), { timeoutMs: 0 }))
    const accepted = await Promise.all(all)
    await eventually(async () => long.total() === 6 || undefined, 'all of them have begun')
    const taken = await Promise.all(Array.from({ length: 4 }, () => a.database.pool.connect()))
    await workFor(2 * leaseMs)
    for (const client of taken) client.release()
    for (const { task_id } of accepted) assert.equal((await fixture.waitForEnd(task_id)).outcome, 'executed')
    assert.equal(long.total(), 6)
    assert.ok(b.taskEngine)
  })
})
