/** A task that cancels exits of the gateway ends them in the commit of its result, or not at all. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { cancelAllSteps } from '#engines/venue/orders/cancel-all.ts'
import { disarm, type SpotCancelTaskData } from '#features/spot-venue/cancel.ts'
import { cancelAllTriggersSteps } from '#features/spot-venue/cancel-all.ts'
import { triggerKind } from '#features/spot-venue/trigger-store.ts'
import { type Admission, type Step, type TaskView, untypedSteps } from '#kernel/task/task.ts'
import { type EngineFixture, newUser, openFixture, workFor } from '../durable/engine-fixture.ts'

const market = 'hl:spot:HYPE'

describe('exits held by the gateway', () => {
  let rig: EngineFixture
  before(async () => {
    rig = await openFixture()
  })
  after(async () => rig[Symbol.asyncDispose]())

  const arm = async (userId: string): Promise<string> => {
    const id = newUser()
    await rig.rows(
      `insert into trigger_order (id, user_id, kind, market, direction, trigger_price, input, status, created_at, updated_at)
       values ($1, $2, $3, $4, 'lte', 10, '{"symbol": "HYPE"}', 'armed', clock_timestamp(), clock_timestamp()) returning id`,
      id,
      userId,
      triggerKind,
      market,
    )
    return id
  }
  const statusOf = async (id: string) =>
    (await rig.rows<{ status: string }>('select status from trigger_order where id = $1', id))[0]?.status

  /** The steps without an order at the venue. */
  const steps = () => {
    const deps = { db: rig.admin.pool }
    const atVenue = cancelAllSteps(deps as unknown as Parameters<typeof cancelAllSteps>[0])
    return {
      all: untypedSteps({ ...atVenue, ...cancelAllTriggersSteps(deps, atVenue.sign) }),
      one: untypedSteps({ disarm: (task: TaskView<SpotCancelTaskData>) => disarm(deps, task) }),
    }
  }
  const kinds: [string, () => Record<string, Step>, (id: string) => Admission][] = [
    ['one exit', () => steps().one, (id) => ({ first: 'disarm', data: { trigger_id: id } })],
    [
      'all exits',
      () => steps().all,
      (id) => ({
        first: 'disarm',
        data: {
          operation: 'spot_cancel_all',
          orders: [],
          resolved: 0,
          outcomes: [],
          triggers: [{ id, symbol: 'HYPE' }],
        },
      }),
    ],
  ]
  for (const [what, stepsOf, admission] of kinds) {
    const instance = (exitId: string) =>
      rig.instance({ steps: stepsOf() }, { admit: async () => admission(exitId) })

    test(`the cancel of ${what} commits with its outcome`, async () => {
      const user = newUser()
      const exitId = await arm(user)
      await using a = await instance(exitId)
      assert.equal((await a.run(user)).outcome, 'executed')
      assert.equal(await statusOf(exitId), 'cancelled')
      assert.equal(
        (await a.run(user)).outcome,
        'executed',
        'a cancelled exit is cancelled again without an error',
      )
    })

    test(`a task that is cancelled before it has cancelled ${what} leaves it armed`, async () => {
      const user = newUser()
      const exitId = await arm(user)
      await using a = await instance(exitId)
      const { task_id } = await (async () => {
        using _lock = await rig.lockRows('select 1 from trigger_order where id = $1 for update', exitId)
        const begun = await a.run(user, { timeoutMs: 0 })
        // The step had time to reach the row.
        await workFor(300)
        await a.taskEngine.tasks.cancel(user, begun.task_id)
        return begun
      })()
      const end = await rig.waitForEnd(task_id)
      assert.deepEqual([end.status, end.outcome], ['cancelled', 'not_executed'])
      assert.equal(await statusOf(exitId), 'armed')
    })

    test(`an exit that fired before is not reported as cancelled by the cancel of ${what}`, async () => {
      const user = newUser()
      const exitId = await arm(user)
      await rig.rows(`update trigger_order set status = 'fired' where id = $1 returning id`, exitId)
      await using a = await instance(exitId)
      const { status, outcome, error } = await a.run(user)
      assert.deepEqual([status, outcome, error?.code], ['failed', 'not_executed', 'order_not_cancellable'])
    })
  }
})
