import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** The venue's reads lag behind its replies, or never show an order: no exit is destroyed, and every result is true. */

const blind = Number.POSITIVE_INFINITY

describe('lagging reads', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({ quiet: 'each test sets the lag of one read itself', lagging: true })
  })
  beforeEach(async () => {
    app.lag.set({})
    await app.market.control('DELETE', '/faults', {})
    await app.price('BTC', 100_000)
    await app.price('ETH', 3_000)
  })
  after(() => app?.[Symbol.asyncDispose]())

  const fault = (what: object) => app.market.control('POST', '/faults', what)
  const positionOf = async (user: User) => (await app.call('perp_orders', {}, user)).positions[0]
  const open = (user: User, more: object = {}): Promise<TaskAnswer> =>
    app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01', ...more }, user)
  const bracket = { tp_price: '120000', sl_price: '80000' }
  const legs = ({ result }: TaskAnswer) => result.legs.map(({ role, status }) => [role, status])
  const untouched = async (user: User, statuses: string[]) => {
    const { orders } = await app.venueState(user)
    assert.deepEqual(orders.map(({ status }) => status).sort(), statuses.sort())
  }

  for (const statusMs of [20, 100, 800, blind]) {
    const reported = statusMs === blind ? 'is blind' : `lags by ${statusMs} ms`

    test(`a bracketed open keeps its position and its exits where the status of orders ${reported}`, async () => {
      const user = await app.trader()
      app.lag.set({ statusMs })
      const done = await open(user, bracket)
      assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
      const expected = [
        ['entry', 'filled'],
        ['tp', 'open'],
        ['sl', 'open'],
      ]
      assert.deepEqual(legs(done), expected)
      const position = await positionOf(user)
      assert.deepEqual([position?.size, position?.tp_oids.length], ['0.01', 1])
      assert.deepEqual([position?.tp_oids, position?.sl_oids], [done.result.tp_oids, done.result.sl_oids])
      await untouched(user, ['filled', 'open', 'open'])
    })

    test(`a limit order with a bracket rests with it where the status of orders ${reported}`, async () => {
      const user = await app.trader()
      app.lag.set({ statusMs })
      const done = await open(user, { ...bracket, order_type: 'limit', limit_price: '90000' })
      assert.deepEqual(
        [done.outcome, done.result?.order_status],
        ['executed', 'resting'],
        JSON.stringify(done),
      )
      const expected = [
        ['entry', 'resting'],
        ['tp', 'waiting'],
        ['sl', 'waiting'],
      ]
      assert.deepEqual(legs(done), expected)
      assert.deepEqual([done.result.tp_oids.length, done.result.sl_oids.length], [1, 1])
      await untouched(user, ['open', 'open', 'open'])
    })

    test(`a bracket whose reply is lost is found where the status of orders ${reported}`, async () => {
      const user = await app.trader()
      app.lag.set({ statusMs })
      await fault({ endpoint: 'exchange', type: 'order', effect: 'dropReply', count: 1 })
      const begun = await open(user, bracket)
      const done = begun.outcome === 'executed' ? begun : await app.waitForEnd(user, begun.task_id)
      assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
      await untouched(user, ['filled', 'open', 'open'])
    })
  }

  test('a filled order never ends as expired, although only the position shows it', async () => {
    const user = await app.trader()
    app.lag.set({ statusMs: blind, ordersMs: blind, fillsMs: blind })
    await fault({ endpoint: 'exchange', type: 'order', effect: 'dropReply', count: 1 })
    const begun = await app.call('perp_open', { asset: 'ETH', side: 'long', size: '0.01' }, user, {
      wait: false,
    })
    await eventually(
      async () => ((await app.venueState(user)).fills.length > 0 ? true : undefined),
      'the order is filled',
    )
    await app.market.control('POST', '/advance', { ms: 60_000 })
    const polled = app.lag.asked('orderStatus')
    await eventually(
      async () => (app.lag.asked('orderStatus') > polled + 3 ? true : undefined),
      'the order was looked up after its expiry',
    )
    const doubted = await app.main.taskEngine.tasks.find(user.id, begun.task_id)
    assert.equal(doubted.completed_at, null, JSON.stringify(doubted))
    app.lag.set({ statusMs: blind, ordersMs: blind })
    const end = await app.waitForEnd(user, begun.task_id)
    assert.deepEqual([end.status, end.outcome], ['completed', 'executed'], JSON.stringify(end))
    assert.equal((end.result as TaskAnswer['result']).filled_size, '0.01')
  })

  test('an order that never arrived ends as not executed while the status of orders is blind', async () => {
    const user = await app.trader()
    app.lag.set({ statusMs: blind })
    await fault({ endpoint: 'exchange', type: 'order', effect: 'status', status: 503 })
    const begun = await app.call('perp_open', { asset: 'ETH', side: 'long', size: '0.01' }, user, {
      wait: false,
    })
    await eventually(async () => {
      const faults = await app.market.control<{ struck: number }[]>('GET', '/faults')
      return faults.some(({ struck }) => struck > 0) ? true : undefined
    }, 'the order was sent')
    await app.market.control('POST', '/advance', { ms: 60_000 })
    const end = await app.waitForEnd(user, begun.task_id)
    assert.deepEqual([end.status, end.outcome, end.error?.code], ['failed', 'not_executed', 'expired'])
    await app.market.control('DELETE', '/faults', {})
    assert.deepEqual((await app.venueState(user)).orders, [])
  })

  test('a task waits for fills that are shown late, and its result has all of them', async () => {
    const user = await app.trader()
    app.lag.set({ statusMs: blind, fillsMs: 3_000 })
    const begun = await open(user, { ...bracket })
    const done = begun.completed_at
      ? begun
      : ((await app.waitForEnd(user, begun.task_id)) as unknown as TaskAnswer)
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
    assert.equal(done.result.filled_size, '0.01')
    await untouched(user, ['filled', 'open', 'open'])
  })

  test('after a lost reply to a filled order the task waits for its fills and does not report none', async () => {
    const user = await app.trader()
    app.lag.set({ fillsMs: 2_000 })
    await fault({ endpoint: 'exchange', type: 'order', effect: 'dropReply', count: 1 })
    const begun = await open(user)
    const done = begun.completed_at
      ? begun
      : ((await app.waitForEnd(user, begun.task_id)) as unknown as TaskAnswer)
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
    assert.equal(done.result.filled_size, '0.01')
  })

  test('a cancel whose reply is lost ends as cancelled while the status of orders is blind', async () => {
    const user = await app.trader()
    const resting = await open(user, { order_type: 'limit', limit_price: '90000' })
    app.lag.set({ statusMs: blind })
    await fault({ endpoint: 'exchange', type: 'cancel', effect: 'dropReply', count: 1 })
    const { order_id } = resting.result
    const begun = await app.call('perp_cancel', { order_id }, user, { wait: false })
    await eventually(
      async () => ((await app.venueState(user)).orders[0]?.status === 'canceled' ? true : undefined),
      'the order is cancelled',
    )
    await app.market.control('POST', '/advance', { ms: 60_000 })
    const end = await app.waitForEnd(user, begun.task_id)
    assert.deepEqual([end.status, end.outcome], ['completed', 'executed'], JSON.stringify(end))
  })

  test('a spot order that no list shows is not found by the cancel of perpetuals', async () => {
    const user = await app.trader()
    app.lag.set({ ordersMs: blind })
    const resting = await app.call(
      'spot_venue_buy',
      { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: '30' },
      user,
    )
    const { order_id } = resting.result
    await assert.rejects(app.call('perp_cancel', { order_id }, user), { code: 'not_found' })
    const done = await app.call('spot_venue_cancel', { order_id }, user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
  })

  test('an order that was just placed can be cancelled before any read shows it', async () => {
    const user = await app.trader()
    app.lag.set({ statusMs: blind, ordersMs: blind })
    const resting = await open(user, { order_type: 'limit', limit_price: '90000' })
    assert.equal(resting.result?.order_status, 'resting', JSON.stringify(resting))
    const { order_id } = resting.result
    const done = await app.call('perp_cancel', { order_id }, user)
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
    await untouched(user, ['canceled'])
  })

  test('an unknown end status of an order puts the task into review with the status', async () => {
    const user = await app.trader()
    const rename = (type: string, answer: unknown) =>
      type === 'orderStatus' && (answer as { order?: object }).order
        ? {
            status: 'order',
            order: { ...(answer as { order: object }).order, status: 'evaporatedByVenue' },
          }
        : answer
    app.lag.set({ rewrite: rename })
    await fault({ endpoint: 'exchange', type: 'order', effect: 'dropReply', count: 1 })
    const begun = await app.call(
      'perp_open',
      { asset: 'BTC', side: 'long', size: '0.01', order_type: 'limit', limit_price: '90000' },
      user,
      { wait: false },
    )
    const seen = await eventually(async () => {
      const task = await app.main.taskEngine.tasks.find(user.id, begun.task_id)
      return task.state === 'review' ? task : undefined
    }, 'the task is in review')
    assert.match(String((seen.data.progress as { text: string }).text), /evaporatedByVenue/)
    app.lag.set({})
    assert.equal((await app.waitForEnd(user, begun.task_id)).outcome, 'executed')
  })
})
