import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** Where exits of a holding are held, and that they sell once through every crash. */

describe('exits on spot', () => {
  let app: VenueApp
  let user: User
  before(async () => {
    app = await createVenueApp({ triggerHost: 'venue' })
  })
  beforeEach(async () => {
    await app.market.control('DELETE', '/faults', {})
    await app.market.control('POST', '/settings', { spotTriggers: true })
    await app.price('@1', 40)
    user = await app.trader('1000')
  })
  after(() => app?.[Symbol.asyncDispose]())

  const call = (name: string, input: object): Promise<TaskAnswer> =>
    app.call(`spot_venue_${name}`, input, user)
  const sales = async () => {
    const { tasks } = await app.main.taskEngine.tasks.list(user.id, {
      skip: 0,
      limit: 20,
      kind: 'spot_trigger',
    })
    return tasks
  }
  const isNumber = (id: string) => /^\d+$/.test(id)

  test('a venue that accepts triggers holds the bracket, sells once, and ends the other exit', async () => {
    const bought = await call('buy', { asset: 'HYPE', size: '2', tp_price: '50', sl_price: '35' })
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    assert.ok(
      [...bought.result.tp_oids, ...bought.result.sl_oids].every(isNumber),
      JSON.stringify(bought.result),
    )
    await app.price('@1', 34)
    await eventually(async () => {
      const { orders } = await call('orders', {})
      return orders.length === 0 ? true : undefined
    }, 'the stop has sold')
    const { fills } = await app.venueState(user)
    assert.equal(new Set(fills.map(({ oid }) => oid)).size, 2)
    assert.deepEqual(await sales(), [])
  })

  test('exits of which the venue rejects one are both held by the gateway, so that one still ends the other', async () => {
    await app.market.control('POST', '/faults', {
      endpoint: 'exchange',
      type: 'order',
      effect: 'latency',
      latencyMs: 700,
      count: 1,
    })
    const buying = call('buy', {
      asset: 'HYPE',
      size: '2',
      slippage_pct: '10',
      tp_price: '41',
      sl_price: '35',
    })
    await eventually(async () => {
      const faults = await app.market.control<{ struck: number }[]>('GET', '/faults')
      return faults.some(({ struck }) => struck > 0) ? true : undefined
    }, 'the order is sent')
    // Already beyond the target, which the venue then rejects.
    await app.price('@1', 42)
    const bought = await buying
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    const ids = [...bought.result.tp_oids, ...bought.result.sl_oids]
    assert.deepEqual(ids.map(isNumber), [false, false], JSON.stringify(bought.result))
    const sold = await eventually(
      async () => (await sales()).find(({ completed_at }) => completed_at),
      'the target has sold',
    )
    assert.equal(sold.outcome, 'executed', JSON.stringify(sold))
    const { orders } = await call('orders', {})
    assert.deepEqual(orders, [])
  })

  test('one exit on a holding rests at the venue; a pair needs OCO, so the gateway holds it', async () => {
    await call('buy', { asset: 'HYPE', size: '2' })
    const single = await call('tp_sl', { asset: 'HYPE', sl_price: '30' })
    assert.deepEqual(single.result.sl_oids.map(isNumber), [true], JSON.stringify(single))
    const gone = await call('cancel', { order_id: single.result.sl_oids[0] })
    assert.equal(gone.outcome, 'executed', JSON.stringify(gone))
    const pair = await call('tp_sl', { asset: 'HYPE', sl_price: '30', tp_price: '50' })
    assert.deepEqual([...pair.result.sl_oids, ...pair.result.tp_oids].map(isNumber), [false, false])
  })

  test('a venue that rejects triggers leaves the exits with the gateway, and sells nothing for it', async () => {
    await app.market.control('POST', '/settings', { spotTriggers: false })
    await call('buy', { asset: 'HYPE', size: '2' })
    const single = await call('tp_sl', { asset: 'HYPE', sl_price: '30' })
    assert.equal(single.outcome, 'executed', JSON.stringify(single))
    assert.deepEqual(single.result.sl_oids.map(isNumber), [false])
    await app.price('@1', 29)
    const [sale] = await eventually(async () => {
      const all = await sales()
      return all.some(({ completed_at }) => completed_at) ? all : undefined
    }, 'the gateway has sold')
    assert.equal(sale?.outcome, 'executed', JSON.stringify(sale))
  })

  test('when the watching instance stops, another takes over, and each exit sells once', async () => {
    const second = await app.instance({ triggerHost: 'gateway' })
    const pairs = await Promise.all(
      ['35', '34', '33'].map(async (price) => {
        const who = await app.trader('500')
        const done = await second.call('spot_venue_buy', { asset: 'HYPE', size: '1', sl_price: price }, who)
        assert.equal(done.outcome, 'executed', JSON.stringify(done))
        return who
      }),
    )
    await second[Symbol.asyncDispose]()
    await app.price('@1', 30)
    for (const who of pairs) {
      const truth = await eventually(async () => {
        const now = await app.venueState(who)
        return now.fills.some(({ sz, oid }) => sz && oid !== now.fills[0]?.oid) ? now : undefined
      }, 'the exit has sold')
      assert.equal(new Set(truth.fills.map(({ oid }) => oid)).size, 2)
    }
  })
})
