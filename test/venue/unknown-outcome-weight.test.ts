import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createVenueApp, type TaskAnswer, type VenueApp } from './venue-app.ts'

/** Request weight of determining the outcome of an order whose reply is missing. */

describe('the weight of an unknown outcome', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({ lagging: true, quiet: 'lags would change the number of requests' })
    await app.price('BTC', 100_000)
  })
  beforeEach(async () => {
    app.lag.set({})
    await app.market.control('DELETE', '/faults', {})
  })
  after(() => app?.[Symbol.asyncDispose]())

  const order = { asset: 'BTC', side: 'long', size: '0.01' }
  /** The weight of an open above that of an undisturbed one. */
  const weigh = async (fault: object): Promise<{ end: TaskAnswer; weight: number }> => {
    const user = await app.trader()
    const start = app.lag.weightOf(user.evm)
    await app.call('perp_open', order, user)
    const undisturbed = app.lag.weightOf(user.evm) - start
    await app.market.control('POST', '/faults', { endpoint: 'exchange', type: 'order', ...fault })
    const from = app.lag.weightOf(user.evm)
    const end = await app.call('perp_open', order, user, { timeoutMs: 60_000 })
    return { end, weight: app.lag.weightOf(user.evm) - from - undisturbed }
  }

  test('a lost reply costs one request', async (t) => {
    const { end, weight } = await weigh({ effect: 'dropReply', count: 1 })
    t.diagnostic(`${weight} of weight`)
    assert.equal(end.outcome, 'executed', JSON.stringify(end))
    assert.ok(weight <= 4, String(weight))
  })

  test('a lost reply to an order whose status stays unknown costs one read of every record', async (t) => {
    app.lag.set({ statusMs: Number.POSITIVE_INFINITY })
    const { end, weight } = await weigh({ effect: 'dropReply', count: 1 })
    t.diagnostic(`${weight} of weight`)
    assert.equal(end.outcome, 'executed', JSON.stringify(end))
    assert.ok(weight <= 80, String(weight))
  })

  test('an order that never arrives costs little until it has expired', async (t) => {
    const { end, weight } = await weigh({ effect: 'status', status: 503 })
    t.diagnostic(`${weight} of weight`)
    assert.deepEqual([end.outcome, end.error?.code], ['not_executed', 'expired'], JSON.stringify(end))
    assert.ok(weight <= 240, String(weight))
  })
})
