/** A parked task is woken before it falls due, on whatever instance; one that runs or has ended is left alone. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, newUser, openFixture, type TestKind } from './engine-fixture.ts'

const hourMs = 3_600_000
const parks: TestKind = {
  steps: {
    wait: async () => ({ park: { afterMs: hourMs, next: 'end' } }),
    end: async () => executed,
  },
}

describe('waking parked tasks', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  test('a woken task runs at once, and is woken once', async () => {
    await using instance = await fixture.instance(parks)
    const { task_id: id } = await instance.run(newUser(), { timeoutMs: 1 })
    const woken = await eventually(async () => {
      const ids = await instance.taskEngine.wakeTasks([id])
      return ids.length > 0 ? ids : undefined
    }, 'the parked task is woken')
    assert.deepEqual(woken, [id])
    assert.equal((await fixture.waitForEnd(id)).outcome, 'executed')
    assert.deepEqual(await instance.taskEngine.wakeTasks([id]), [])
  })

  test('a task that a transaction has queued runs before the next poll, once it is announced', async () => {
    await using instance = await fixture.instance(parks, { claimPollMs: hourMs })
    const userId = newUser()
    const { taskEngine } = instance
    const [kind, admission] = [
      { kind: 'test_run', version: 1, priority: 1 as const, steps: {} },
      { first: 'end', data: {} },
    ]
    const id = await taskEngine.transact((tx) =>
      taskEngine.enqueue(tx, { userId, kind, input: {}, admission }),
    )
    taskEngine.announceQueued()
    assert.equal((await fixture.waitForEnd(id)).outcome, 'executed')
  })

  test('a task whose row is locked is left to a later call, without a wait', async () => {
    await using instance = await fixture.instance(parks)
    const { task_id: id } = await instance.run(newUser(), { timeoutMs: 1 })
    await eventually(
      async () => ((await fixture.readTask(id)).step === 'end' ? true : undefined),
      'the task is parked',
    )
    {
      using _lock = await fixture.lockRows('select from task_queue where task_id = $1 for update', id)
      assert.deepEqual(await instance.taskEngine.wakeTasks([id]), [])
    }
    await eventually(
      async () => ((await instance.taskEngine.wakeTasks([id])).length > 0 ? true : undefined),
      'the task is woken',
    )
    assert.equal((await fixture.waitForEnd(id)).outcome, 'executed')
  })
})
