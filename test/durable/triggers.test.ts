/** Price triggers: each order fires once, independently of the other orders of its market. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { silentLog } from '#kernel/log.ts'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const kind = { steps: { only: async () => executed } }
const fired = { kind: 'fired', version: 1, priority: 0 as const, steps: kind.steps }

describe('price triggers', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const arm = async (market: string, userId: string): Promise<string> => {
    const id = newUser()
    await fixture.rows(
      `insert into trigger_order (id, user_id, kind, market, direction, trigger_price, input, status, created_at)
       values ($1, $2, 'fired', $3, 'lte', 10, '{}', 'armed', clock_timestamp()) returning id`,
      id,
      userId,
      market,
    )
    return id
  }
  const statusOf = async (id: string) =>
    (await fixture.rows<{ status: string }>('select status from trigger_order where id = $1', id))[0]?.status

  test('no idempotency key of a client blocks a trigger', async () => {
    await using a = await fixture.instance(kind, { internal: [fired] })
    const [user, other] = [newUser(), newUser()]
    const own = await arm('KEYS', user)
    const foreign = await arm('KEYS', other)
    await a.run(user, { key: `trigger:${own}` })
    const lease = await a.taskEngine.priceTriggers.lease('KEYS')
    assert.equal(await a.taskEngine.priceTriggers.fireTriggers(lease!, '9'), 2)
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
    const lease = await a.taskEngine.priceTriggers.lease('BROKEN')
    assert.equal(await a.taskEngine.priceTriggers.fireTriggers(lease!, '9'), 1)
    assert.deepEqual([await statusOf(broken), await statusOf(sound)], ['armed', 'fired'])
    assert.equal(errors.length, 1)
    await fixture.rows('drop trigger refuse_task on task')
    assert.equal(await a.taskEngine.priceTriggers.fireTriggers(lease!, '9'), 1)
    assert.equal(await statusOf(broken), 'fired')
  })

  test('an order of a user whose rows are locked delays no other order, and fires once they are free', async () => {
    await using a = await fixture.instance(kind, { internal: [fired] })
    const [user, ...others] = Array.from({ length: 5 }, newUser) as [string, ...string[]]
    await a.run(user)
    const late = [await arm('LOCKED', user), await arm('LOCKED', user)]
    const prompt = await Promise.all(others.map((other) => arm('LOCKED', other)))
    const lease = await a.taskEngine.priceTriggers.lease('LOCKED')
    const held = await fixture.lockRows('select 1 from user_event_seq where user_id = $1 for update', user)
    try {
      const startedMs = performance.now()
      assert.equal(await a.taskEngine.priceTriggers.fireTriggers(lease!, '9'), others.length)
      assert.equal(await a.taskEngine.priceTriggers.fireTriggers(lease!, '9'), 0)
      assert.ok(performance.now() - startedMs < 3_000, 'orders waited for the row of another user')
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
})
