import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** A position never stays without the stop that was requested. */

describe('brackets', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp()
  })
  beforeEach(async () => {
    await app.market.control('DELETE', '/faults', {})
    await app.price('BTC', 100_000)
  })
  after(() => app?.[Symbol.asyncDispose]())

  const positionOf = async (user: User) => (await app.call('perp_orders', {}, user)).positions[0]

  /** The price moves while the order is sent: an order that was valid at admission is invalid at the venue. */
  const openWhileMoving = async (user: User, body: object, price: number): Promise<TaskAnswer> => {
    await app.market.control('POST', '/faults', {
      endpoint: 'exchange',
      type: 'order',
      effect: 'latency',
      latencyMs: 700,
      count: 1,
    })
    const opening = app.call('perp_open', { asset: 'BTC', size: '0.01', ...body }, user)
    await eventually(async () => {
      const faults = await app.market.control<{ struck: number }[]>('GET', '/faults')
      return faults.some(({ struck }) => struck > 0) ? true : undefined
    }, 'the order is sent')
    await app.price('BTC', price)
    return opening
  }

  test('a position whose stop the venue rejects is closed, and the task is partial', async () => {
    const user = await app.trader()
    const done = await openWhileMoving(user, { side: 'long', sl_price: '99000', slippage_pct: '5' }, 98_000)
    assert.deepEqual([done.status, done.outcome], ['failed', 'partial'], JSON.stringify(done))
    assert.equal(done.error?.code, 'venue_rejected')
    assert.match(done.message, /A part was executed/)
    assert.equal(await positionOf(user), undefined)
    assert.deepEqual(done.fills.map(({ side, size }) => [side, size]).sort(), [
      ['buy', '0.01'],
      ['sell', '0.01'],
    ])
    assert.equal(done.result.legs.find(({ role }) => role === 'sl')?.status, 'missing')
  })

  test('a take-profit behind the price is reported as missing, and the stop stays open', async () => {
    const user = await app.trader()
    const done = await openWhileMoving(
      user,
      { side: 'long', tp_price: '101000', sl_price: '95000', slippage_pct: '5' },
      102_000,
    )
    assert.deepEqual([done.status, done.outcome], ['failed', 'partial'], JSON.stringify(done))
    assert.deepEqual([done.result.tp_oids, done.result.sl_oids.length], [[], 1])
    const position = await positionOf(user)
    assert.deepEqual([position?.size, position?.sl_oids], ['0.01', done.result.sl_oids])
  })

  test('a partially filled entry gets exits for the filled part, and the task is partial', async () => {
    const user = await app.trader('400000')
    const { levels } = await app.book('HYPE')
    const { px, sz } = levels[1]![0]!
    const done = await app.call(
      'perp_open',
      {
        asset: 'HYPE',
        side: 'long',
        size: String(Math.ceil(Number(sz)) + 20),
        leverage: 5,
        order_type: 'limit',
        limit_price: px,
        tif: 'ioc',
        tp_price: '80',
        sl_price: '20',
      },
      user,
    )
    assert.deepEqual([done.status, done.outcome], ['completed', 'partial'], JSON.stringify(done))
    const { result } = done
    assert.deepEqual([result.tp_oids.length, result.sl_oids.length], [1, 1])
    const position = await positionOf(user)
    assert.equal(position?.size, result.filled_size)
    assert.deepEqual([position?.tp_oids, position?.sl_oids], [result.tp_oids, result.sl_oids])
    await app.price('HYPE', 19)
    await eventually(async () => ((await positionOf(user)) ? undefined : true), 'the stop has closed it')
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
  })

  test('a resting entry whose stop is rejected is cancelled', async () => {
    const user = await app.trader()
    const limit = { order_type: 'limit', limit_price: '99000', sl_price: '98500' }
    const done = await openWhileMoving(user, { side: 'long', ...limit }, 98_400)
    if (done.result?.order_status === 'resting') assert.fail(JSON.stringify(done))
    assert.equal(done.status, 'failed')
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
    assert.equal(await positionOf(user), undefined)
  })

  test('exits of a resting order wait for it, are listed, and are cancelled with it', async () => {
    const user = await app.trader()
    const done = await app.call(
      'perp_open',
      {
        asset: 'BTC',
        side: 'short',
        size: '0.01',
        order_type: 'limit',
        limit_price: '120000',
        tp_price: '90000',
        sl_price: '130000',
        sl_is_market: false,
      },
      user,
    )
    assert.deepEqual([done.outcome, done.result.order_status], ['executed', 'resting'], JSON.stringify(done))
    assert.deepEqual([done.result.tp_oids.length, done.result.sl_oids.length], [1, 1])
    const { orders } = await app.call('perp_orders', {}, user)
    assert.deepEqual(
      orders.map(({ tpsl, parent_order_id }) => [tpsl, parent_order_id]).sort(),
      [
        [null, null],
        ['sl', done.result.order_id],
        ['tp', done.result.order_id],
      ].sort(),
    )
    await app.call('perp_cancel', { order_id: done.result.order_id }, user)
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
  })

  test('exits of an unfilled entry are listed as waiting, and no position lists them', async () => {
    const user = await app.trader()
    const bracket = { asset: 'BTC', side: 'long', size: '0.01', tp_price: '120000', sl_price: '80000' }
    const limit = { order_type: 'limit', limit_price: '90000' }
    const resting = await app.call('perp_open', { ...bracket, ...limit }, user)
    const shown = ({ result }: TaskAnswer) => result.legs.map(({ role, status }) => [role, status])
    const waiting = [
      ['entry', 'resting'],
      ['tp', 'waiting'],
      ['sl', 'waiting'],
    ]
    assert.deepEqual(shown(resting), waiting)
    await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user)
    const { orders, positions } = await app.call('perp_orders', {}, user)
    assert.deepEqual([positions[0]?.tp_oids, positions[0]?.sl_oids], [[], []])
    assert.deepEqual(orders.map(({ tpsl, status }) => [tpsl, status]).sort(), [
      [null, 'open'],
      ['sl', 'waiting'],
      ['tp', 'waiting'],
    ])
  })

  test('a close ends the exits of its position, and those of a resting order stay', async () => {
    const user = await app.trader()
    const bracket = { asset: 'BTC', side: 'long', size: '0.01', tp_price: '120000', sl_price: '80000' }
    const opened = await app.call('perp_open', bracket, user)
    const limit = { order_type: 'limit', limit_price: '90000' }
    const resting = await app.call('perp_open', { ...bracket, ...limit }, user)
    const shown = async () =>
      (await app.call('perp_orders', {}, user)).orders.map(({ task_id, tpsl }) => [task_id, tpsl]).sort()
    const ofResting = [null, 'sl', 'tp'].map((leg) => [resting.task_id, leg])
    const openExits = [...['sl', 'tp'].map((leg) => [opened.task_id, leg]), ...ofResting]
    const part = await app.call('perp_close', { asset: 'BTC', size: '0.004' }, user)
    assert.equal(part.outcome, 'executed', JSON.stringify(part))
    assert.deepEqual(await shown(), openExits.sort())
    const rest = await app.call('perp_close', { asset: 'BTC' }, user)
    assert.deepEqual([rest.outcome, rest.result.filled_size], ['executed', '0.006'], JSON.stringify(rest))
    assert.deepEqual(await shown(), ofResting.sort())
    const { orders } = await app.venueState(user)
    const own = [...opened.result.tp_oids, ...opened.result.sl_oids]
    assert.deepEqual(
      orders.filter(({ oid }) => own.includes(String(oid))).map(({ status }) => status),
      ['reduceOnlyCanceled', 'reduceOnlyCanceled'],
    )
  })

  test('after a lost reply to a bracket all three orders are found', async () => {
    const user = await app.trader()
    await app.market.control('POST', '/faults', {
      endpoint: 'exchange',
      type: 'order',
      effect: 'dropReply',
      count: 1,
    })
    const done = await app.call(
      'perp_open',
      { asset: 'BTC', side: 'short', size: '0.01', tp_price: '90000', sl_price: '110000' },
      user,
    )
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
    const position = await positionOf(user)
    assert.deepEqual([position?.tp_oids, position?.sl_oids], [done.result.tp_oids, done.result.sl_oids])
    assert.equal((await app.venueState(user)).orders.length, 3)
  })
})
