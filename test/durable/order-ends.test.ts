/** What the end of a task leaves on the row of its order, and the events that report it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { insertTriggerOrders, type NewTriggerOrder } from '#engines/trigger-orders/store.ts'
import { hookRules } from '#features/hooks/hook-order-rules.ts'
import { type HookInput, hookKind } from '#features/hooks/view.ts'
import { createOrderKind } from '#features/swap/orders/run-order.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { StepResult } from '#kernel/task/task.ts'
import type { TriggerOrder } from '#kernel/task/trigger-order.ts'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const kind = { steps: { only: async () => executed } }
const failed: StepResult = {
  end: 'failed',
  outcome: 'not_executed',
  error: { code: 'no_route', message: 'There is no route' },
}
const input: HookInput = {
  chain_id: '8453',
  token_address: '0xaa',
  symbol: 'T',
  type: 'stop_loss',
  reference: 'mark',
  reference_price_usd: null,
  sell_percentage: '1',
  slippage_bps: 100,
  usdc: '0xcc',
}

describe('ends of orders', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const insert = async (order: Partial<NewTriggerOrder> & { user_id: string; kind: string }) => {
    const id = newUser()
    const basis = { market: 'ENDS', direction: 'lte', trigger_price: '10', created_at: new Date() } as const
    await fixture.admin.transaction((tx) => insertTriggerOrders(tx, [{ ...basis, id, input, ...order }]))
    return id
  }
  const rowOf = async (id: string) =>
    (await fixture.rows<TriggerOrder>('select * from trigger_order where id = $1', id))[0]!
  const endOf = (id: string) =>
    eventually(async () => (await rowOf(id)).task_end ?? undefined, `the end of the order ${id}`)

  test('the commit that ends a task stores its end with the order, also where many end at once', async () => {
    const steps = (result: StepResult) => ({ only: async () => result })
    await using a = await fixture.instance(kind, {
      internal: [
        { kind: 'sold', version: 1, priority: 0, steps: steps(executed) },
        { kind: 'unsold', version: 1, priority: 0, steps: steps(failed) },
      ],
    })
    const users = Array.from({ length: 20 }, newUser)
    const ids = await Promise.all(
      users.flatMap((user_id) => ['sold', 'unsold'].map((each) => insert({ user_id, kind: each }))),
    )
    const { priceTriggers } = a
    const [lease] = await priceTriggers.lease(['ENDS'])
    assert.equal(await priceTriggers.fireTriggers(lease!, '9'), ids.length)
    const ends = await Promise.all(ids.map(endOf))
    assert.deepEqual(
      ends,
      ids.map((_, n) => (n % 2 === 0 ? 'completed' : 'failed')),
    )
    const [apart] = await fixture.rows<{ count: number }>(
      `select count(*)::integer from trigger_order o join task t on t.id = o.task_id
         where o.id = any($1) and (o.task_end <> t.status or o.updated_at <> t.completed_at)`,
      ids,
    )
    assert.equal(apart?.count, 0)
  })

  // Another task has reserved all of it: the order is armed again.
  const reserved = async () => ({ units: 0n, heldUnits: 5n })
  /** A stop and a target of one group; the stop has fired, and its step waits for `go`. */
  const firedGroup = async (market: string, available: () => Promise<unknown> = reserved) => {
    const gate = Promise.withResolvers<void>()
    const deps = {
      db: fixture.admin.pool,
      clock,
      assertFree: () => undefined,
      swaps: {
        steps: {},
        soldBefore: async () => undefined,
        available: async () => {
          await gate.promise
          return available()
        },
      },
    }
    const hooks = createOrderKind(deps as never, hookRules)
    const instance = await fixture.instance(kind, { internal: [hooks] })
    const user = newUser()
    const group = { user_id: user, kind: hookKind, market, oco_group: newUser() }
    const stop = await insert(group)
    const target = await insert({ ...group, direction: 'gte', trigger_price: '20' })
    const { priceTriggers } = instance
    const [lease] = await priceTriggers.lease([market])
    assert.equal(await priceTriggers.fireTriggers(lease!, '9'), 1)
    const taskId = (await rowOf(stop)).task_id!
    const armedEvents = async () =>
      (
        await fixture.rows<{ id: string }>(
          `select subject ->> 'id' as id from user_event where user_id = $1
             and type in ('hook.created', 'hook.attempt_failed') order by seq`,
          user,
        )
      ).map(({ id }) => id)
    return { instance, user, stop, target, taskId, go: () => gate.resolve(), armedEvents }
  }

  test('an order that is armed again reports itself and those of its group', async () => {
    const group = await firedGroup('ALONE')
    await using _ = group.instance
    group.go()
    await fixture.waitForEnd(group.taskId)
    const [stop, target] = [await rowOf(group.stop), await rowOf(group.target)]
    assert.deepEqual([stop.status, stop.task_end, target.status], ['armed', null, 'armed'])
    assert.deepEqual((await group.armedEvents()).sort(), [group.stop, group.target].sort())
  })

  test('an order whose task the engine ends, since its time has passed, is armed again and reports it', async () => {
    const failures = [new Fault('unavailable', 'The node is away'), new TypeError('a bug')]
    for (const [n, failure] of failures.entries()) {
      const group = await firedGroup(`LATE${n}`, () => Promise.reject(failure))
      await using _ = group.instance
      await fixture.rows(
        `update task set deadline = now() - interval '1 second' where id = $1 returning 1`,
        group.taskId,
      )
      group.go()
      const { outcome } = await fixture.waitForEnd(group.taskId)
      const [stop, target] = [await rowOf(group.stop), await rowOf(group.target)]
      assert.deepEqual(
        [outcome, stop.status, stop.task_end, stop.input.failures, target.status],
        ['not_executed', 'armed', null, 1, 'armed'],
      )
      assert.deepEqual((await group.armedEvents()).sort(), [group.stop, group.target].sort())
    }
  })

  test('one that the user cancels while the commit waits for it is neither armed nor reported as armed', async () => {
    const group = await firedGroup('RACE')
    await using _ = group.instance
    const client = await fixture.admin.pool.connect()
    try {
      await client.query('begin')
      await client.query('update trigger_order set cancelled_by = null where id = $1', [group.target])
      group.go()
      await eventually(async () => {
        const [row] = await fixture.rows<{ count: number }>(
          'select count(*)::integer from pg_locks where not granted',
        )
        return row!.count > 0 || undefined
      }, 'the commit waits for the row of the cancelled order')
      await client.query('commit')
    } finally {
      client.release(true)
    }
    await fixture.waitForEnd(group.taskId)
    assert.deepEqual(
      [(await rowOf(group.stop)).status, (await rowOf(group.target)).status],
      ['armed', 'cancelled'],
    )
    assert.deepEqual(await group.armedEvents(), [group.stop])
  })
})
