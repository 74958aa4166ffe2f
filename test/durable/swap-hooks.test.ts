/** Hooks that a swap leaves: armed once, sold within what was received, cancelled by token. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { cancelOrders, cancelTaskOrders } from '#engines/trigger-orders/cancel.ts'
import { createRound } from '#engines/trigger-orders/price-watch.ts'
import { quoteKeyOf } from '#engines/trigger-orders/quote-key.ts'
import { ordersById } from '#engines/trigger-orders/store.ts'
import { hookRules } from '#features/hooks/hook-order-rules.ts'
import { createSwapHooks, type NewSwapHooks } from '#features/hooks/swap-hooks.ts'
import { type HookInput, hookKind } from '#features/hooks/view.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { silentLog } from '#kernel/log.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { Policy } from '#kernel/task/signer.ts'
import type { TaskView } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import {
  confirmed,
  type EngineFixture,
  executed,
  newUser,
  openFixture,
  signingStep,
} from './engine-fixture.ts'

const kind = { steps: { only: async () => executed } }
/** A task that goes on for as long as the test looks at it. */
const waits = async () => ({ park: { afterMs: 60_000, next: 'only' } })
const hookTask = { kind: hookKind, version: 1, priority: 0 as const, steps: { only: waits } }

const usdc = '0x00000000000000000000000000000000000000cc'
const chain = { id: '8453', family: 'evm', usdc, displayName: 'Base' } as Chain
const tokenAt = (address: string) => ({ address, symbol: 'T', name: 'T', decimals: 18 })
const newToken = () => tokenAt(`0x${newUser().replaceAll('-', '').padStart(40, '0')}`)

describe('hooks of a swap', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const hooksOf = () =>
    createSwapHooks({
      db: fixture.admin.pool,
      displayPrices: async () => new Map(),
      policy: { check: async () => ({}) } as unknown as Pick<Policy, 'check'>,
    })
  const legs = (...sells: string[]): NewSwapHooks['legs'] =>
    sells.map((sell, n) => ({
      id: newUser(),
      type: n === 0 ? ('stop_loss' as const) : ('take_profit' as const),
      fraction: '0.1',
      price: null,
      sell,
    }))
  const newHooks = (userId: string, given: NewSwapHooks['legs'], token = newToken()): NewSwapHooks => ({
    userId,
    executionId: newUser(),
    chain,
    token,
    legs: given,
    group: newUser(),
    price: '10',
    units: 1_000n,
    slippageBps: 100,
    at: new Date(),
  })
  const arm = (hooks: NewSwapHooks) => fixture.admin.transaction((tx) => hooksOf().arm(tx, hooks))
  const rowOf = async (userId: string, id: string) =>
    (await ordersById<HookInput & JsonObject>(fixture.admin.pool, userId, [id]))[0]!
  const limitOf = async (userId: string, id: string) =>
    hookRules.unitsMax!(fixture.admin.pool, await rowOf(userId, id))
  const leftOf = async (userId: string, id: string) => (await limitOf(userId, id))?.units
  const quoteKey = ({ token }: NewSwapHooks, units: bigint) =>
    quoteKeyOf({
      tokenIn: `8453:${token.address}`,
      tokenOut: `8453:${usdc}`,
      amountInUnits: units,
      priced: 'in',
    })
  const marketOf = ({ token }: NewSwapHooks) => `token:8453:${token.address}`

  test('a repeated arming arms nothing twice, and counts from the price of the fill', async () => {
    const user = newUser()
    const hooks = newHooks(user, legs('1', '0.5'))
    const first = await arm(hooks)
    await arm(hooks)
    const { rows } = await fixture.admin.pool.query(
      'select direction, trigger_price from trigger_order where user_id = $1 order by direction',
      [user],
    )
    assert.deepEqual(
      rows.map(({ direction, trigger_price }) => [direction, Number(trigger_price)]),
      [
        ['gte', 11],
        ['lte', 9],
      ],
    )
    assert.equal(first.events.length, 2)
  })

  test('a group sells what was received once, however its hooks fire', async () => {
    await using a = await fixture.instance(kind, { internal: [hookTask] })
    const user = newUser()
    const [stop, near] = legs('1', '0.25')
    const hooks = newHooks(user, [stop!, near!])
    await arm(hooks)
    const { priceTriggers } = a
    const [lease] = await priceTriggers.lease([marketOf(hooks)])
    assert.equal(await priceTriggers.fireTriggers(lease!, '11.5', quoteKey(hooks, 250n)), 1)
    assert.equal(await leftOf(user, near!.id), 1_000n)
    assert.equal(await priceTriggers.fireTriggers(lease!, '8', quoteKey(hooks, 1_000n)), 1)
    // The profit fired first: its quarter is its own before it is priced, and what it sells once it is.
    assert.equal(await leftOf(user, stop!.id), 750n)
    assert.equal(await leftOf(user, near!.id), 1_000n)
    const taskOf = async (id: string) => (await rowOf(user, id)).task_id!
    const sells = (id: string, units: string) =>
      taskOf(id).then((task) =>
        fixture.rows(
          `update task set data = data || jsonb_build_object('amount_in', $2::text) where id = $1`,
          task,
          units,
        ),
      )
    await sells(near!.id, '240')
    await sells(stop!.id, '750')
    assert.deepEqual(await limitOf(user, stop!.id), { units: 760n, heldUnits: 240n })
    assert.deepEqual(await limitOf(user, near!.id), { units: 250n, heldUnits: 750n })
    // One of them has ended: what it sold is gone for the other.
    const row = await rowOf(user, near!.id)
    await fixture.admin.transaction((tx) => hookRules.onSold!(tx, row, 240n))
    await fixture.rows('delete from task_queue where task_id = $1', row.task_id!)
    assert.equal(await leftOf(user, stop!.id), 760n)
  })

  test('a cancel by token takes the hooks of that token and user alone, and none that has fired', async () => {
    await using a = await fixture.instance(kind, { internal: [hookTask] })
    const [user, other] = [newUser(), newUser()]
    const hooks = newHooks(user, legs('1', '0.5'))
    const fired = newHooks(user, legs('0.1'), hooks.token)
    const elsewhere = newHooks(user, legs('1'))
    const foreign = newHooks(other, legs('1'), hooks.token)
    for (const each of [hooks, fired, elsewhere, foreign]) await arm(each)
    const { priceTriggers } = a
    const [lease] = await priceTriggers.lease([marketOf(hooks)])
    assert.equal(await priceTriggers.fireTriggers(lease!, '8', quoteKey(fired, 100n)), 1)
    const found = await fixture.admin.transaction((tx) =>
      hooksOf().cancelOn(tx, user, { chain, token: hooks.token, at: new Date() }),
    )
    assert.deepEqual(found.ids, hooks.legs.map(({ id }) => id).sort())
    assert.equal(found.events.length, 2)
    const statuses = await Promise.all(
      [
        [user, hooks.legs[0]!.id],
        [user, fired.legs[0]!.id],
        [user, elsewhere.legs[0]!.id],
        [other, foreign.legs[0]!.id],
      ].map(async ([of, id]) => (await rowOf(of!, id!)).status),
    )
    assert.deepEqual(statuses, ['cancelled', 'fired', 'armed', 'armed'])
  })

  test('of a cancel and the task of a hook that fired one wins: nothing was signed, or it goes on', async () => {
    await using a = await fixture.instance(kind, { internal: [hookTask] })
    const user = newUser()
    const [stop, profit] = legs('1', '0.5')
    const hooks = newHooks(user, [stop!, profit!])
    await arm(hooks)
    const {
      priceTriggers,
      taskEngine: { tasks },
    } = a
    const [lease] = await priceTriggers.lease([marketOf(hooks)])
    const fire = () => priceTriggers.fireTriggers(lease!, '8', quoteKey(hooks, 1_000n))
    const cancel = (...ids: string[]) =>
      fixture.admin.transaction((tx) =>
        cancelOrders({ tx }, tasks, user, { ids, kinds: [hookKind], at: new Date() }),
      )
    const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id)
    const statuses = () =>
      Promise.all([stop!.id, profit!.id].map(async (id) => (await rowOf(user, id)).status))

    assert.equal(await fire(), 1)
    const { task_id: signed } = await rowOf(user, stop!.id)
    const effect = newUser()
    await fixture.rows(
      `insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, at)
         values ($1, $2, 'only', 'test', '{}', '{}', $3, 'prepared', 'none', now())`,
      effect,
      signed,
      effect,
    )
    assert.deepEqual(await cancel(stop!.id), { cancelled: [], armed: [] })
    assert.deepEqual(await statuses(), ['fired', 'cancelled'])

    // An effect that cannot land any more is none.
    await fixture.rows(`update effect set status = 'dropped' where id = $1`, effect)
    const taken = await cancel(stop!.id)
    assert.deepEqual([idsOf(taken.cancelled), idsOf(taken.armed)], [[stop!.id], [profit!.id]])
    const ended = await fixture.waitForEnd(signed!)
    assert.deepEqual([ended.status, ended.outcome], ['cancelled', 'not_executed'])
    assert.deepEqual(await statuses(), ['cancelled', 'armed'])
    assert.equal(await fire(), 0)
    assert.deepEqual(await cancel(stop!.id), { cancelled: [], armed: [] })

    const both = newHooks(user, legs('1', '0.5'), hooks.token)
    await arm(both)
    assert.equal(await priceTriggers.fireTriggers(lease!, '8', quoteKey(both, 1_000n)), 1)
    const all = await cancel(...both.legs.map(({ id }) => id))
    assert.deepEqual([idsOf(all.cancelled), idsOf(all.armed)], [[both.legs[0]!.id], []])
  })

  test('of many cancels that race the signatures of two instances each has one winner', async (t) => {
    const sells = {
      ...hookTask,
      steps: { only: signingStep('confirm'), confirm: async (task: TaskView) => confirmed(task) },
    }
    await using a = await fixture.instance(kind, { internal: [sells] })
    await using b = await fixture.instance(kind, { internal: [sells] })
    const user = newUser()
    const { priceTriggers } = a
    const cancel = (id: string, n: number) =>
      fixture.admin.transaction(async (tx) => {
        const { tasks } = (n % 4 < 2 ? a : b).taskEngine
        const at = new Date()
        if (n % 2 === 0)
          return (await cancelOrders({ tx }, tasks, user, { ids: [id], kinds: [hookKind], at })).cancelled
        const { task_id: taskId } = (await ordersById(tx, user, [id]))[0]!
        const taskIds = await tasks.cancelNotSent(user, [taskId!], { tx })
        return (await cancelTaskOrders(tx, { taskIds, ids: [], at })).cancelled
      })
    const won = { cancels: 0, signatures: 0 }
    for (let round = 0; round < 20 && (round < 3 || !won.cancels || !won.signatures); round++) {
      const token = newToken()
      const pairs = Array.from({ length: 20 }, () => newHooks(user, legs('1', '0.5'), token))
      for (const hooks of pairs) await arm(hooks)
      const [lease] = await priceTriggers.lease([marketOf(pairs[0]!)])
      assert.equal(await priceTriggers.fireTriggers(lease!, '8', quoteKey(pairs[0]!, 1_000n)), pairs.length)
      const cancelled = await Promise.all(pairs.map(({ legs: [stop] }, n) => cancel(stop!.id, n)))
      for (const [n, hooks] of pairs.entries()) {
        const [stop, profit] = await Promise.all(hooks.legs.map(({ id }) => rowOf(user, id)))
        const { status } = await fixture.waitForEnd(stop!.task_id!)
        const effects = await fixture.rows('select 1 from effect where task_id = $1', stop!.task_id!)
        const isCancelled = cancelled[n]!.length === 1
        won[isCancelled ? 'cancels' : 'signatures'] += 1
        assert.deepEqual(
          [stop!.status, profit!.status, status, effects.length],
          isCancelled ? ['cancelled', 'armed', 'cancelled', 0] : ['fired', 'cancelled', 'completed', 1],
        )
      }
    }
    t.diagnostic(JSON.stringify(won))
    assert.ok(won.cancels > 0 && won.signatures > 0, JSON.stringify(won))
  })

  test('one bad quote fires nothing; of two that agree the milder one counts', async () => {
    await using a = await fixture.instance(kind, { internal: [hookTask] })
    const user = newUser()
    const round = (hooks: NewSwapHooks, quotes: string[]) =>
      createRound({
        db: fixture.admin.pool,
        clock,
        log: silentLog,
        priceTriggers: a.priceTriggers,
        displayPrices: async (markets) =>
          new Map(
            markets
              .filter((each) => each === marketOf(hooks))
              .map((each) => [each, { price: '9', at: new Date() }]),
          ),
        quotePrice: async () => quotes.shift() ?? '12',
        quotesPerMinute: 6_000,
        isOnDuty: () => true,
      })
    const statusesOf = (hooks: NewSwapHooks) =>
      Promise.all(hooks.legs.map(async ({ id }) => (await rowOf(user, id)).status))
    const [near] = legs('1')
    const hooks = { ...newHooks(user, [near!, { ...near!, id: newUser(), fraction: '0.4' }]), group: null }
    await arm(hooks)
    const bad = round(hooks, ['5', '12'])
    for (let n = 0; n < 3; n++) await bad()
    assert.deepEqual(await statusesOf(hooks), ['armed', 'armed'])
    const agreed = round(hooks, ['5', '8'])
    for (let n = 0; n < 2; n++) await agreed()
    assert.deepEqual(await statusesOf(hooks), ['fired', 'armed'])
  })

  test('a quote that cannot be read, and orders that cannot expire, delay the orders of no other token', async () => {
    await using a = await fixture.instance(kind, { internal: [hookTask] })
    const errors: unknown[] = []
    const user = newUser()
    const broken = newHooks(newUser(), legs('1'))
    const sound = newHooks(user, legs('1'))
    for (const hooks of [broken, sound]) await arm(hooks)
    const expire = async () => {
      throw new TypeError('no order can expire')
    }
    const round = createRound({
      db: fixture.admin.pool,
      clock,
      log: { ...silentLog, error: (facts) => errors.push(facts) },
      priceTriggers: { ...a.priceTriggers, expire },
      displayPrices: async (markets) =>
        new Map(
          markets
            .filter((each) => [broken, sound].map(marketOf).includes(each))
            .map((each) => [each, { price: '8', at: new Date() }]),
        ),
      async quotePrice(key) {
        if (key.includes(broken.token.address)) throw new TypeError('the answer has no price')
        return '8'
      },
      quotesPerMinute: 6_000,
      isOnDuty: () => true,
    })
    for (let n = 0; n < 2; n++) await round()
    assert.equal((await rowOf(user, sound.legs[0]!.id)).status, 'fired')
    assert.equal((await rowOf(broken.userId, broken.legs[0]!.id)).status, 'armed')
    assert.ok(errors.length >= 2, `${errors.length} errors are reported`)
  })

  test('orders on more tokens than a round watches keep no order from firing, and trailing stops follow', async () => {
    await using a = await fixture.instance(kind, { internal: [hookTask] })
    const [flooder, user] = [newUser(), newUser()]
    // Its market is the last one by name.
    const hooks = newHooks(
      user,
      [{ id: newUser(), type: 'trailing', fraction: '0.1', price: null, sell: '1' }],
      {
        ...tokenAt(`0x${'f'.repeat(40)}`),
      },
    )
    await arm(hooks)
    const flood = await fixture.rows<{ id: string }>(
      `insert into trigger_order
           (id, user_id, kind, market, direction, trigger_price, quote_key, input, status, created_at, updated_at)
         select gen_random_uuid(), $1, 'test', 'token:1:' || lpad(n::text, 6, '0'), 'lte', 1, n, '{}', 'armed', now(), now()
         from generate_series(1, 12000) n returning id`,
      flooder,
    )
    let shown = { price: '10', at: new Date() }
    const round = createRound({
      db: fixture.admin.pool,
      clock,
      log: silentLog,
      priceTriggers: a.priceTriggers,
      displayPrices: async (markets) =>
        new Map(markets.filter((each) => each === marketOf(hooks)).map((each) => [each, shown])),
      quotePrice: async () => '8',
      quotesPerMinute: 6_000,
      isOnDuty: () => true,
    })
    const row = () => rowOf(user, hooks.legs[0]!.id)
    try {
      for (let n = 0; n < 10; n++) {
        shown = { price: String(11 + n), at: new Date() }
        await round()
      }
      assert.ok(Number((await row()).high_water) > 10, 'the trailing stop follows')
      shown = { price: '8', at: new Date() }
      for (let n = 0; n < 10; n++) await round()
      assert.equal((await row()).status, 'fired')
    } finally {
      await fixture.rows(
        'delete from trigger_order where id = any($1) returning 1',
        flood.map(({ id }) => id),
      )
    }
  })
})
