import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { type EventType, eventData } from '#features/notifications/event-types.ts'
import { testFunding } from '../harness/conservation.ts'
import { eventually } from '../harness/gateway.ts'
import { accountRecords, startReconciler } from './reconcilers.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** Every fill of ours since the creation of the wallet becomes an event with its task and its leg. */

describe('the first fills of an account', () => {
  let app: VenueApp
  let its: ReturnType<typeof accountRecords>
  const parts = new AsyncDisposableStack()
  before(async () => {
    app = await createVenueApp()
    its = accountRecords(app)
    // As slow as in production, so that the first comparison comes after the first fills. The end of an order that no
    // stream reported is found by the comparison of an idle account.
    parts.use(startReconciler(app, app.main, { tickMs: 1_000, tradingMs: 3_000, idleMs: 30_000 }))
    await app.price('BTC', 100_000)
  })
  after(async () => {
    await parts.disposeAsync()
    await app?.[Symbol.asyncDispose]()
  })

  const funded = async (): Promise<User> => {
    const user = await app.addUser()
    await app.fundWallet(user, '5000')
    for (const [name, input] of [
      ['perp_fund', { amount_usd: '1000' }],
      ['perp_setup', {}],
    ] as const)
      assert.equal((await app.call(name, input, user)).outcome, 'executed')
    return user
  }
  const trade = async (name: string, input: object, user: User): Promise<TaskAnswer> => {
    const done = await app.call(name, input, user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    return done
  }
  const eventsOf = async (user: User, type: string, count: number) =>
    eventually(
      async () => {
        const rows = await its.sql<{ task_id: string | null; body: Record<string, string> }>(
          'select task_id, body from user_event where user_id = $1 and type = $2 order by seq',
          [user.id, type],
        )
        return rows.length >= count ? rows : undefined
      },
      `${count} of ${type}`,
      90_000,
    )

  test('a position that is opened and closed right after the first funding has events of both fills', async () => {
    const user = await funded()
    const opened = await trade('perp_open', { asset: 'BTC', side: 'long', size: '0.005' }, user)
    const closed = await trade('perp_close', { asset: 'BTC' }, user)
    const { fills } = await app.venueState(user)
    const rows = await eventsOf(user, 'order.filled', fills.length)
    assert.deepEqual(rows.map(({ body }) => body.fill_id).sort(), fills.map(({ tid }) => String(tid)).sort())
    assert.deepEqual(new Set(rows.map(({ task_id }) => task_id)), new Set([opened.task_id, closed.task_id]))
    assert.ok(rows.every(({ task_id, body }) => task_id === body.task_id))
    const legs = new Map(rows.map(({ task_id, body }) => [task_id, body.leg]))
    assert.deepEqual([legs.get(opened.task_id), legs.get(closed.task_id)], ['entry', 'close'])
    await its.waitForMatch(user)
  })

  test('a stop that fires at once has an event with its task and leg', async () => {
    const user = await funded()
    const opened = await trade(
      'perp_open',
      { asset: 'BTC', side: 'long', size: '0.005', sl_price: '99000' },
      user,
    )
    await app.price('BTC', 98_900)
    const { sl_oids } = opened.result
    const fired = await eventually(
      async () => {
        const rows = await eventsOf(user, 'order.filled', 1)
        return rows.find(({ body }) => body.order_id === sl_oids[0])
      },
      'the event of the stop',
      30_000,
    )
    assert.deepEqual([fired.task_id, fired.body.leg], [opened.task_id, 'sl'])
    await app.price('BTC', 100_000)
    await its.waitForMatch(user)
  })

  test('a liquidation right after the first funding has an event', async () => {
    const user = await funded()
    await trade('perp_open', { asset: 'BTC', side: 'long', size: '0.05', leverage: 40 }, user)
    testFunding.excludeUser(user.evm, 'the venue covers the loss of a liquidation below zero')
    await app.price('BTC', 80_000)
    const [reported] = await eventsOf(user, 'position.liquidated', 1)
    assert.equal(reported?.body.asset, 'BTC')
    await app.price('BTC', 100_000)
  })

  test('the event of a cancelled exit names its leg', async () => {
    const user = await funded()
    const opened = await trade(
      'perp_open',
      { asset: 'BTC', side: 'long', size: '0.005', sl_price: '99000' },
      user,
    )
    await trade('perp_close', { asset: 'BTC' }, user)
    const [reported] = await eventsOf(user, 'order.cancelled', 1)
    assert.deepEqual([reported?.task_id, reported?.body.leg], [opened.task_id, 'sl'])
    await its.waitForMatch(user)
  })

  test('every event has the form of its type', async () => {
    const rows = await its.sql<{ type: EventType; body: Record<string, unknown> }>(
      "select type, body from user_event where type not like 'task.%'",
    )
    const ajv = new Ajv2020({ strict: false, allErrors: true })
    formats.default(ajv)
    for (const { type, body } of rows) {
      const isWell = ajv.compile(eventData[type])
      assert.ok(isWell(body), `${type} ${JSON.stringify(body)}: ${ajv.errorsText(isWell.errors)}`)
    }
    const types = new Set(rows.map(({ type }) => type))
    for (const type of [
      'order.filled',
      'order.cancelled',
      'position.changed',
      'position.liquidated',
    ] as const)
      assert.ok(types.has(type), type)
  })
})
