/** A database that lost commits which an instance saw: money waits on every instance until an operator goes on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { executed, newUser, openFixture } from './engine-fixture.ts'

const leaseMs = 600
const resume = `with resumed as (delete from money_hold)
  update database_binding set value = (value::integer + 1)::text where key = 'time_generation' returning value`

test('every instance holds money within a heartbeat, forgets no task, and goes on together', async () => {
  await using fixture = await openFixture()
  let runs = 0
  const kind = {
    steps: {
      only: async () => {
        runs += 1
        return executed
      },
    },
  }
  let admissions = 0
  const admit = async () => {
    admissions += 1
    return { data: {}, first: 'only' }
  }
  const instances = [
    await fixture.instance(kind, { leaseMs, admit }),
    await fixture.instance(kind, { leaseMs, admit }),
  ] as const
  const userId = newUser()
  assert.equal((await instances[0].run(userId, { key: 'before' })).outcome, 'executed')
  const beats = () => fixture.rows<{ beat: string }>('select beat from database_witness where beat > 2')
  await eventually(async () => (await beats()).length === 2 || undefined, 'both have counted heartbeats')

  // As a backup from before the third heartbeat shows them.
  await fixture.rows('update database_witness set beat = 1 returning id')
  for (const [n, instance] of instances.entries()) {
    await eventually(async () => instance.taskEngine.holds.find(), `instance ${n} holds money`, 4 * leaseMs)
    const refusal = await instance.run(userId, { key: `held ${n}` }).catch((error: unknown) => error)
    assert.equal((refusal as { code: string }).code, 'unavailable')
    const { extras } = refusal as { extras: Record<string, unknown> }
    assert.deepEqual(
      { ...extras, since: null },
      { reason: 'money_on_hold', hold: 'went_back', scope: 'all', since: null, retry_after: 60 },
    )
    // A request that the database knows is answered.
    assert.equal((await instance.run(userId, { key: 'before' })).outcome, 'executed')
  }
  assert.equal(admissions, 1, 'nothing is read for what is refused')
  const [hold] = await fixture.rows<{ reason: string; detail: { seen: object; found: object } }>(
    'select reason, detail from money_hold',
  )
  assert.equal(hold?.reason, 'went_back')
  assert.ok(hold.detail.seen && hold.detail.found)

  // A task that is ready meanwhile, as one of a schedule is, waits.
  const waiting = newUser()
  const [engine] = [instances[0].taskEngine]
  const taskKind = { kind: 'test_run', version: 1, priority: 1, steps: kind.steps } as const
  const taskId = await engine.transact((tx) =>
    engine.enqueue(tx, {
      userId: waiting,
      kind: taskKind,
      input: {},
      admission: { data: {}, first: 'only' },
    }),
  )
  engine.announceQueued()
  const [{ beat }] = (await fixture.rows<{ beat: string }>(
    'select max(beat) as beat from database_witness',
  )) as [{ beat: string }]
  const later = () => fixture.rows('select 1 from database_witness where beat > $1', String(Number(beat) + 2))
  await eventually(async () => (await later()).length > 0 || undefined, 'two more heartbeats')
  assert.equal((await fixture.readTask(taskId)).status, 'pending')
  assert.equal(runs, 1)

  await fixture.rows(resume)
  assert.equal((await fixture.waitForEnd(taskId)).outcome, 'executed')
  for (const instance of instances)
    await eventually(async () => !instance.taskEngine.holds.find() || undefined, 'money goes on')
  assert.equal((await instances[1].run(userId, { key: 'after' })).outcome, 'executed')
})
