/** Price triggers: each order fires once, independently of the other orders of its market. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  insertTriggerOrders,
  marketsWithOrders,
  type NewTriggerOrder,
  quotesNear,
  rearmTriggerOrder,
} from '#engines/trigger-orders/store.ts'
import { silentLog } from '#kernel/log.ts'
import type { TriggerOrder } from '#kernel/task/trigger-order.ts'
import { eventually } from '../harness/gateway.ts'
import { blocksOf } from '../harness/plan-blocks.ts'
import { type EngineFixture, executed, newUser, openFixture, unblocked } from './engine-fixture.ts'

const kind = { steps: { only: async () => executed } }
const fired = { kind: 'fired', version: 1, priority: 0 as const, steps: kind.steps }
/** Orders of this kind have events; that of one order cannot be made. */
const published = (broken?: string) => ({
  ...fired,
  orderEvent: ({ id, status }: TriggerOrder) => {
    if (id === broken) throw new TypeError('this order has no view')
    return { type: `order.${status}`, subject: { kind: 'order', id }, data: {} }
  },
})

describe('price triggers', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const arm = async (
    market: string,
    userId: string,
    order: Partial<NewTriggerOrder> = {},
  ): Promise<string> => {
    const id = newUser()
    const basis = { direction: 'lte', trigger_price: '10', input: {}, created_at: new Date() } as const
    const row = { ...basis, id, user_id: userId, kind: 'fired', market, ...order }
    await fixture.admin.transaction((tx) => insertTriggerOrders(tx, [row]))
    return id
  }
  const rowOf = async (id: string) =>
    (await fixture.rows<TriggerOrder>('select * from trigger_order where id = $1', id))[0]!
  const statusOf = async (id: string) =>
    (await fixture.rows<{ status: string }>('select status from trigger_order where id = $1', id))[0]?.status

  test('no idempotency key of a client blocks a trigger', async () => {
    await using a = await fixture.instance(kind, { internal: [fired] })
    const [user, other] = [newUser(), newUser()]
    const own = await arm('KEYS', user)
    const foreign = await arm('KEYS', other)
    await a.run(user, { key: `trigger:${own}` })
    const [lease] = await a.priceTriggers.lease(['KEYS'])
    assert.equal(await a.priceTriggers.fireTriggers(lease!, '9'), 2)
    assert.deepEqual([await statusOf(own), await statusOf(foreign)], ['fired', 'fired'])
  })

  test('an order that cannot fire stays armed, is reported, and delays no other order', async () => {
    const errors: unknown[] = []
    await using a = await fixture.instance(kind, {
      internal: [fired],
      log: { ...silentLog, error: (facts) => errors.push(facts) },
    })
    const [user, other] = [newUser(), newUser()]
    const broken = await arm('BROKEN', user)
    const sound = await arm('BROKEN', other)
    await fixture.rows(
      `create function refuse_task() returns trigger language plpgsql as $$
         begin raise exception 'this task is refused'; end $$`,
    )
    await fixture.rows(
      `create trigger refuse_task before insert on task for each row when (new.user_id = '${user}') execute function refuse_task()`,
    )
    const [lease] = await a.priceTriggers.lease(['BROKEN'])
    assert.equal(await a.priceTriggers.fireTriggers(lease!, '9'), 1)
    assert.deepEqual([await statusOf(broken), await statusOf(sound)], ['armed', 'fired'])
    assert.equal(errors.length, 1)
    await fixture.rows('drop trigger refuse_task on task')
    assert.equal(await a.priceTriggers.fireTriggers(lease!, '9'), 1)
    assert.equal(await statusOf(broken), 'fired')
  })

  test('an order of a user whose rows are locked delays no other order, and fires once they are free', async () => {
    await using a = await fixture.instance(kind, { internal: [fired] })
    const [user, ...others] = Array.from({ length: 5 }, newUser) as [string, ...string[]]
    await a.run(user)
    const late = [await arm('LOCKED', user), await arm('LOCKED', user)]
    const prompt = await Promise.all(others.map((other) => arm('LOCKED', other)))
    const [lease] = await a.priceTriggers.lease(['LOCKED'])
    const held = await fixture.lockRows('select 1 from user_event_seq where user_id = $1 for update', user)
    try {
      const fire = () => unblocked(a.priceTriggers.fireTriggers(lease!, '9'))
      assert.equal(await fire(), others.length)
      assert.equal(await fire(), 0)
      for (const id of prompt) assert.equal(await statusOf(id), 'fired')
      for (const id of late) assert.equal(await statusOf(id), 'armed')
    } finally {
      held[Symbol.dispose]()
    }
    // The price has come back: what it has crossed fires all the same.
    await eventually(
      async () =>
        (await Promise.all(late.map(statusOf))).every((status) => status === 'fired') ? true : undefined,
      'the orders of the blocked user',
    )
    const tasks = await fixture.rows(`select id from task where user_id = $1 and kind = 'fired'`, user)
    assert.equal(tasks.length, late.length)
  })

  test('a price fires what it crossed on either side, and of a quote only the orders of that quote', async () => {
    await using a = await fixture.instance(kind, { internal: [fired] })
    const user = newUser()
    const below = await arm('SIDES', user, { trigger_price: '10' })
    const lower = await arm('SIDES', user, { trigger_price: '8' })
    const above = await arm('SIDES', user, { trigger_price: '12', direction: 'gte' })
    const quoted = await arm('SIDES', user, { quote_key: 'small' })
    const other = await arm('SIDES', user, { quote_key: 'large' })
    const { priceTriggers } = a
    const [lease] = await priceTriggers.lease(['SIDES'])
    const statuses = () => Promise.all([below, lower, above, quoted, other].map(statusOf))
    assert.equal(await priceTriggers.fireTriggers(lease!, '11'), 0)
    assert.equal(await priceTriggers.fireTriggers(lease!, '9'), 1)
    assert.deepEqual(await statuses(), ['fired', 'armed', 'armed', 'armed', 'armed'])
    assert.equal(await priceTriggers.fireTriggers(lease!, '12'), 1)
    assert.equal(await priceTriggers.fireTriggers(lease!, '10', 'small'), 1)
    assert.deepEqual(await statuses(), ['fired', 'armed', 'fired', 'fired', 'armed'])
  })

  test('a price that crosses both orders of a group fires one of them', async () => {
    await using a = await fixture.instance(kind, { internal: [fired] })
    const user = newUser()
    const oco_group = newUser()
    const stop = await arm('GAP', user, { oco_group })
    const target = await arm('GAP', user, { oco_group, direction: 'gte', trigger_price: '5' })
    const [lease] = await a.priceTriggers.lease(['GAP'])
    assert.equal(await a.priceTriggers.fireTriggers(lease!, '7'), 1)
    assert.equal(await a.priceTriggers.fireTriggers(lease!, '7'), 0)
    assert.deepEqual([await statusOf(stop), await statusOf(target)], ['fired', 'cancelled'])
    assert.equal((await rowOf(target)).cancelled_by, stop)
  })

  test('an order that is armed again fires again with its group, under a task of its own', async () => {
    await using a = await fixture.instance(kind, { internal: [fired] })
    const user = newUser()
    const oco_group = newUser()
    const stop = await arm('AGAIN', user, { oco_group })
    const target = await arm('AGAIN', user, { oco_group, direction: 'gte', trigger_price: '20' })
    const { priceTriggers } = a
    const [lease] = await priceTriggers.lease(['AGAIN'])
    assert.equal(await priceTriggers.fireTriggers(lease!, '9'), 1)
    const first = await rowOf(stop)
    const rearm = (taskId: string) =>
      fixture.admin.transaction((tx) => rearmTriggerOrder(tx, { orderId: stop, taskId, at: new Date() }))
    assert.equal((await rearm(newUser())).length, 0, 'another task than the one of the order')
    assert.equal((await rearm(first.task_id!)).length, 2)
    assert.deepEqual([await statusOf(stop), await statusOf(target)], ['armed', 'armed'])
    // The first task may hold the user's lock as it ends; then the order fires as soon as that is free.
    await priceTriggers.fireTriggers(lease!, '9')
    await eventually(async () => (await statusOf(stop)) === 'fired' || undefined, 'the order has fired again')
    const second = await rowOf(stop)
    assert.notEqual(second.task_id, first.task_id)
    assert.deepEqual([second.attempts, await statusOf(target)], [2, 'cancelled'])
    assert.equal((await rearm(first.task_id!)).length, 0, 'the first task again')
  })

  test('an order whose time has passed never fires, and expires', async () => {
    await using a = await fixture.instance(kind, { internal: [fired] })
    const late = await arm('LATE', newUser(), { expires_at: new Date(Date.now() - 1) })
    const open = await arm('LATE', newUser(), { expires_at: new Date(Date.now() + 60_000) })
    const { priceTriggers } = a
    const [lease] = await priceTriggers.lease(['LATE'])
    assert.equal(await priceTriggers.fireTriggers(lease!, '9'), 1)
    assert.equal(await priceTriggers.expire(), 1)
    assert.equal(await priceTriggers.expire(), 0)
    assert.deepEqual([await statusOf(late), await statusOf(open)], ['expired', 'fired'])
  })

  test('expired orders of a user whose rows are locked delay those of nobody, and expire once they are free', async () => {
    await using a = await fixture.instance(kind, { internal: [published()] })
    const [user, other] = [newUser(), newUser()]
    await a.run(user)
    const past = { expires_at: new Date(Date.now() - 1_000) }
    const late = await arm('EXPIRED', user, past)
    const prompt = await arm('EXPIRED', other, past)
    const { priceTriggers } = a
    const held = await fixture.lockRows('select 1 from user_event_seq where user_id = $1 for update', user)
    try {
      assert.equal(await priceTriggers.expire(), 1)
      assert.deepEqual([await statusOf(late), await statusOf(prompt)], ['armed', 'expired'])
      assert.equal(await priceTriggers.expire(), 0, 'the others do not wait for it again')
    } finally {
      held[Symbol.dispose]()
    }
    await eventually(
      async () => ((await priceTriggers.expire()) === 1 ? true : undefined),
      'the order of the blocked user expires',
      20_000,
    )
    assert.equal(await statusOf(late), 'expired')
  })

  test('an order that cannot expire is reported, and delays no other one', async () => {
    const errors: unknown[] = []
    const past = { expires_at: new Date(Date.now() - 60_000) }
    const broken = await arm('STUCK', newUser(), past)
    const sound = await arm('STUCK', newUser(), { expires_at: new Date(Date.now() - 1_000) })
    await using a = await fixture.instance(kind, {
      internal: [published(broken)],
      log: { ...silentLog, error: (facts) => errors.push(facts) },
    })
    assert.equal(await a.priceTriggers.expire(), 1)
    assert.deepEqual([await statusOf(broken), await statusOf(sound)], ['armed', 'expired'])
    assert.equal(errors.length, 1)
    await fixture.rows('delete from trigger_order where id = $1 returning id', broken)
  })

  test('many orders that two instances fire at once while they are cancelled end fired or cancelled, once', async () => {
    await using a = await fixture.instance(kind, { internal: [fired] })
    await using b = await fixture.instance(kind, { internal: [fired] })
    const users = Array.from({ length: 40 }, newUser)
    const ids = await Promise.all(users.flatMap((user) => [arm('RACE', user), arm('RACE', user)]))
    const fireOn = async ({ priceTriggers }: typeof a) => {
      const [lease] = await priceTriggers.lease(['RACE'])
      return lease ? priceTriggers.fireTriggers(lease, '9') : 0
    }
    const cancel = async (id: string) =>
      (
        await fixture.rows(
          `update trigger_order set status = 'cancelled' where id = $1 and status = 'armed' returning id`,
          id,
        )
      ).length
    const cancels = ids.filter((_, n) => n % 4 === 0).map(cancel)
    const fires = [fireOn(a), fireOn(b), fireOn(a), fireOn(b)]
    const cancelled = (await Promise.all(cancels)).reduce((sum, each) => sum + each, 0)
    await Promise.all(fires)
    await eventually(async () => {
      await Promise.all([fireOn(a), fireOn(b)])
      return (await Promise.all(ids.map(statusOf))).includes('armed') ? undefined : true
    }, 'no order is armed')
    const [count] = await fixture.rows<{ tasks: number; orders: number }>(
      `select count(*)::integer as tasks, count(distinct data ->> 'trigger_order_id')::integer as orders
       from task where data ->> 'trigger_order_id' = any($1)`,
      ids,
    )
    assert.deepEqual(count, { tasks: ids.length - cancelled, orders: ids.length - cancelled })
  })

  test('markets with open orders are listed once each', async () => {
    const market = `LISTED:${newUser()}`
    await arm(market, newUser())
    await arm(market, newUser(), { status: 'waiting' })
    await arm(`${market}:2`, newUser(), { status: 'waiting' })
    assert.deepEqual(await marketsWithOrders(fixture.admin.pool, market), [
      { market, waiting: true },
      { market: `${market}:2`, waiting: true },
    ])
  })

  test('markets of another kind do not use up the number of those that are listed', async () => {
    const [market, user] = [`token:${newUser()}`, newUser()]
    await arm(market, user)
    const added = await fixture.rows<{ id: string }>(
      `insert into trigger_order (id, user_id, kind, market, direction, trigger_price, input, status, created_at, updated_at)
         select gen_random_uuid(), $1, 'test', 'other:' || n, 'lte', 1, '{}', 'armed', now(), now()
         from generate_series(1, 5000) n returning id`,
      user,
    )
    const listed = await marketsWithOrders(fixture.admin.pool, 'token:')
    assert.ok(listed.some((each) => each.market === market))
    await fixture.rows(
      'delete from trigger_order where id = any($1)',
      added.map(({ id }) => id),
    )
  })

  test('users with as many orders as they may have, all of them near the price, keep out no other one', async () => {
    const [market, last] = [`NEAR:${newUser()}`, newUser()]
    for (const user of [newUser(), newUser(), newUser()])
      await fixture.rows(
        `insert into trigger_order
             (id, user_id, kind, market, direction, trigger_price, quote_key, input, status, created_at, updated_at)
           select gen_random_uuid(), $1, 'test', $2, 'lte', 10, $1::uuid::text || n, '{}', 'armed', now(), now()
           from generate_series(1, 200) n`,
        user,
        market,
      )
    await arm(market, last, { quote_key: 'last', trigger_price: '9.5' })
    const near = await quotesNear(fixture.admin.pool, [{ market, low: '9', high: '11' }])
    assert.ok(near.some(({ owners }) => owners.includes(last)))
    assert.ok(near.length <= 31, `${near.length} quotes`)
  })

  test('of the users of a quote the one with the fewest orders near their price comes first', async () => {
    const [many, one] = [newUser(), newUser()]
    for (const quote_key of ['a', 'b', 'shared']) await arm('TURNS', many, { quote_key })
    await arm('TURNS', one, { quote_key: 'shared' })
    const near = await quotesNear(fixture.admin.pool, [{ market: 'TURNS', low: '9', high: '11' }], {
      except: ['b'],
    })
    assert.deepEqual(near.map(({ quote_key, owners }) => [quote_key, ...owners]).sort(), [
      ['a', many],
      ['shared', one, many],
    ])
  })

  test('of many markets a bounded number of orders is read, and no further market', async () => {
    const markets = Array.from({ length: 400 }, (_, at) => `MANY:${String(at).padStart(3, '0')}`)
    await fixture.rows(
      `insert into trigger_order
           (id, user_id, kind, market, direction, trigger_price, quote_key, input, status, created_at, updated_at)
         select gen_random_uuid(), gen_random_uuid(), 'test', m, 'lte', 10, 'q' || n % 4, '{}', 'armed', now(), now()
         from unnest($1::text[]) m, generate_series(1, 20) n`,
      markets,
    )
    await fixture.rows('analyze trigger_order')
    const bands = markets.map((market) => ({ market, low: '9', high: '11' }))
    const near = await quotesNear(fixture.admin.pool, bands, { ordersMax: 90 })
    const sum = (values: readonly number[]) => values.reduce((total, each) => total + each, 0)
    assert.equal(sum(near.map(({ orders }) => orders)), 90)
    assert.deepEqual([...new Set(near.map(({ market }) => market))].sort(), markets.slice(0, 5))
    const [few, all] = await Promise.all(
      [bands.slice(0, 5), bands].map((some) =>
        blocksOf(fixture.admin.pool, (db) => quotesNear(db, some, { ordersMax: 90 })),
      ),
    )
    assert.ok(sum(all!) <= sum(few!) + 20, `${all} blocks for 400 markets, ${few} for 5`)
  })
})
