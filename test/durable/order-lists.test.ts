/** Lists of orders: each status is found among any number of others. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  assertOrdersFit,
  insertTriggerOrders,
  type NewTriggerOrder,
  ordersOf,
  ordersPerUserMax,
} from '#engines/trigger-orders/store.ts'
import { limitOrderKind, statusFilters } from '#features/limit-orders/view.ts'
import type { StepResult } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const kind = { steps: { only: async () => executed } }
const failing = async (): Promise<StepResult> => ({
  end: 'failed',
  outcome: 'not_executed',
  error: { code: 'no_route', message: 'There is no route' },
})
const limitOrders = { kind: limitOrderKind, version: 1, priority: 0 as const, steps: { only: failing } }

describe('lists of orders', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const rowsOf = (userId: string, count: number): NewTriggerOrder[] =>
    Array.from({ length: count }, () => ({
      id: newUser(),
      user_id: userId,
      kind: limitOrderKind,
      market: 'LISTED',
      direction: 'lte',
      trigger_price: '10',
      quote_key: 'small',
      input: {},
      created_at: new Date(),
    }))
  const insert = (rows: NewTriggerOrder[]) => fixture.admin.transaction((tx) => insertTriggerOrders(tx, rows))

  test('the oldest order is found by its status below a thousand others, page by page', async () => {
    await using a = await fixture.instance(kind, { internal: [limitOrders] })
    const user = newUser()
    const [oldest, ...others] = rowsOf(user, 1_001).sort((one, other) => (one.id < other.id ? -1 : 1))
    await insert([oldest!])
    const { priceTriggers } = a
    const [lease] = await priceTriggers.lease(['LISTED'])
    assert.equal(await priceTriggers.fireTriggers(lease!, '9', 'small'), 1)
    const [{ task_id } = { task_id: '' }] = await fixture.rows<{ task_id: string }>(
      'select task_id from trigger_order where id = $1',
      oldest!.id,
    )
    await fixture.waitForEnd(task_id)
    await insert(others)
    await fixture.rows(
      `update trigger_order set status = case when id > $2 then 'cancelled' else 'expired' end
         where user_id = $1 and status = 'armed'`,
      user,
      others[499]!.id,
    )
    const idsOf = async (status: keyof typeof statusFilters, after: string | null, limit = 500) =>
      (
        await ordersOf<JsonObject>(fixture.admin.pool, user, {
          kind: limitOrderKind,
          limit,
          after,
          filters: statusFilters[status],
        })
      ).map(({ id }) => id)
    assert.deepEqual(await idsOf('failed', null), [oldest!.id])
    assert.deepEqual(await idsOf('executed', null), [])
    assert.deepEqual(await idsOf('active', null), [])
    const newestFirst = others.map(({ id }) => id).reverse()
    assert.deepEqual(await idsOf('cancelled', null), newestFirst.slice(0, 500))
    assert.deepEqual(await idsOf('expired', null, 3), newestFirst.slice(500, 503))
    assert.deepEqual(await idsOf('expired', newestFirst[502]!), newestFirst.slice(503))
  })

  test('orders that are armed at once never exceed the limit together', async () => {
    const user = newUser()
    await insert(rowsOf(user, ordersPerUserMax - 5))
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () =>
        fixture.admin.transaction(async (tx) => {
          await insertTriggerOrders(tx, rowsOf(user, 2))
          await assertOrdersFit(tx, user, new Date())
        }),
      ),
    )
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 2)
    const [counted] = await fixture.rows<{ open: number }>('select orders_open($1) as open', user)
    assert.equal(counted?.open, ordersPerUserMax - 1)
  })
})
