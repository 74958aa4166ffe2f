/** Commits and cancels that the database accepts: only those of the last claim, each of them once. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { stepView } from '#durable/task/task-row.ts'
import { silentLog } from '#kernel/log.ts'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, newUser, openFixture, signingStep, writer } from './engine-fixture.ts'

describe('fencing of commits', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  /** As an instance does that lives for another hour. */
  const claimAs = (instanceId: string, taskId: string) =>
    fixture.rows(
      `with registered as (insert into instance (id, started_at, lease_until)
         values ($1, now(), now() + interval '1 hour')),
       owned as (update task_queue set owner = $1 where task_id = $2)
       update task set version = version + 1 where id = $2 returning id`,
      instanceId,
      taskId,
    )

  test('an instance commits nothing to a task that another one has claimed', async () => {
    const task = await writer(fixture).accept(newUser())
    const claimed = await fixture.rows(
      'update task set version = version + 1 where id = $1 returning id',
      task.id,
    )
    assert.equal(claimed.length, 1)
    const before = await fixture.readTask(task.id)
    assert.equal(await writer(fixture).step(task, executed), undefined)
    assert.deepEqual(await fixture.readTask(task.id), before)
  })

  test('a run of an earlier claim commits nothing, even on the instance that claimed again', async () => {
    const own = writer(fixture)
    const task = await own.accept(newUser())
    await fixture.rows('update task set version = version + 1 where id = $1 returning id', task.id)
    const before = await fixture.readTask(task.id)
    assert.equal(await own.step(task, executed), undefined)
    assert.deepEqual(await fixture.readTask(task.id), before)
    const claimed = await own.reread(task.id)
    assert.equal((await own.step(claimed!.task, executed))?.task.status, 'completed')
  })

  test('a commit that is repeated after a lost reply writes nothing', async () => {
    const own = writer(fixture)
    const task = await own.accept(newUser())
    const first = await own.step(task, { next: 'second' })
    assert.equal(first?.task.step, 'second')
    const after = await fixture.readTask(task.id)
    assert.equal(await own.step(task, { next: 'second' }), undefined)
    assert.deepEqual(await fixture.readTask(task.id), after)
    assert.ok(await own.step(first!.task, executed), 'the next commit names both that it knows')
  })

  test('a cancel is accepted while no effect is stored, or none that can still land, and rejected otherwise', async () => {
    await using a = await fixture.instance({ steps: { only: async () => executed } })
    const own = writer(fixture)
    const user = newUser()
    const cancelled = async (status: string | null) => {
      const task = await own.accept(user)
      if (status) {
        const { signal } = new AbortController()
        const context = { now: new Date(), signal, stopping: signal }
        const signed = await own.step(task, await signingStep('look')(stepView(task, []), context))
        assert.ok(signed?.signed)
        await fixture.rows('update effect set status = $2 where task_id = $1 returning id', task.id, status)
      }
      return a.taskEngine.tasks.cancel(user, task.id).then(
        ({ cancel_requested }) => cancel_requested,
        ({ code }: { code: string }) => code,
      )
    }
    for (const status of ['prepared', 'sent', 'unknown', 'confirmed'])
      assert.equal(await cancelled(status), 'not_cancellable', status)
    for (const status of [null, 'dropped', 'rejected'])
      assert.equal(await cancelled(status), true, `${status}`)
  })

  test('a cancel within an act uses the connection of the act only', async () => {
    await using a = await fixture.instance({ steps: { only: async () => executed } }, { poolMax: 1 })
    const user = newUser()
    const task = await writer(fixture).accept(user)
    const afterCommit: (() => void)[] = []
    const act = a.database.transaction((tx) =>
      a.taskEngine.tasks.cancel(user, task.id, { tx, afterCommit: (notify) => afterCommit.push(notify) }),
    )
    assert.equal((await act).cancel_requested, true)
    assert.equal(afterCommit.length, 1, 'the notification waits for the commit')
  })

  test('a run that has lost its lease reports no failure of its step, and changes nothing', async () => {
    const errors: string[] = []
    const signals: AbortSignal[] = []
    await using a = await fixture.instance(
      {
        steps: {
          hangs: async (_task, { signal }) => {
            signals.push(signal)
            return new Promise(() => undefined)
          },
        },
      },
      { leaseMs: 900, log: { ...silentLog, error: (_facts, sentence) => errors.push(sentence) } },
    )
    const { task_id } = await a.run(newUser(), { timeoutMs: 0 })
    await eventually(async () => signals.length > 0 || undefined, 'the step has begun')
    const other = newUser()
    await claimAs(other, task_id)
    await eventually(async () => signals.every(({ aborted }) => aborted) || undefined, 'the run is aborted')
    await a[Symbol.asyncDispose]()
    assert.deepEqual(errors, [])
    const { owner, attempts, status } = await fixture.readTask(task_id)
    assert.deepEqual([owner, attempts, status], [other, 0, 'running'])
  })
})
