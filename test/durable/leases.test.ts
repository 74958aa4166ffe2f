/** Leases when steps are long, rows are locked and heartbeats are missed. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import {
  type EngineFixture,
  executed,
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

  test('a missed heartbeat ends the old run, and the new one completes the task', async () => {
    const long = longSteps(2.5)
    await using a = await fixture.instance(long.kind, { leaseMs })
    const running = a.run(newUser(), { timeoutMs: 16 * leaseMs })
    await eventually(async () => long.total() > 0 || undefined, 'the step has begun')
    const taskId = [...long.runs.keys()][0]!
    const withheld = await a.heartbeats.pool.connect()
    try {
      await eventually(
        async () => (await fixture.readTask(taskId)).epoch > 1 || undefined,
        'the task is claimed again',
        8 * leaseMs,
      )
    } finally {
      withheld.release()
    }
    assert.equal((await running).outcome, 'executed')
    assert.deepEqual(
      long.runs.get(taskId)?.map(({ aborted }) => aborted),
      [true, false],
      'one run was aborted, the other one was not',
    )
  })

  test('a run that has lost its lease to another instance is aborted, and its result is discarded', async () => {
    const long = longSteps(4)
    await using a = await fixture.instance(long.kind, { leaseMs })
    const running = a.run(newUser())
    await eventually(async () => long.total() > 0 || undefined, 'the step has begun')
    const [taskId, [signal]] = [...long.runs][0]! as [string, [AbortSignal]]
    const other = newUser()
    const taken = await fixture.rows(
      'update task set owner = $2, epoch = epoch + 1 where id = $1 returning id',
      taskId,
      other,
    )
    assert.equal(taken.length, 1)
    await eventually(async () => signal.aborted || undefined, 'the run is aborted', leaseMs * 2)
    await eventually(
      async () => (a.taskEngine && (await fixture.readTask(taskId)).owner !== other) || undefined,
      'its lease expires',
    )
    assert.equal((await running).outcome, 'executed')
    assert.equal(long.total(), 2)
  })

  test('a locked row costs no other task its lease', async () => {
    const long = longSteps(4)
    await using a = await fixture.instance(long.kind, { leaseMs })
    const all = Array.from({ length: 6 }, () => a.run(newUser()))
    await eventually(async () => long.total() === 6 || undefined, 'all of them have begun')
    const [taskId] = [...long.runs.keys()] as [string]
    {
      using _lock = await fixture.lockRows('select 1 from task where id = $1 for update', taskId)
      await workFor(3 * leaseMs)
    }
    for (const { outcome } of await Promise.all(all)) assert.equal(outcome, 'executed')
    const others = [...long.runs].filter(([id]) => id !== taskId)
    assert.deepEqual(
      others.map(([, runs]) => runs.length),
      [1, 1, 1, 1, 1],
    )
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
