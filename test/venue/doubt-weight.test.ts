import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { type Answer, type Stage, stage } from './stage.ts'

/** What it costs of the venue's request budget to find out what became of an order whose reply is missing. */

describe('the weight of a doubt', () => {
  let on: Stage
  before(async () => {
    on = await stage({ lagging: true, quiet: 'lags would change the number of questions' })
    await on.price('BTC', 100_000)
  })
  beforeEach(async () => {
    on.lag.set({})
    await on.market.control('DELETE', '/faults', {})
  })
  after(() => on?.[Symbol.asyncDispose]())

  const order = { asset: 'BTC', side: 'long', size: '0.01' }
  /** What an open costs beyond one that is not disturbed. */
  const weigh = async (fault: object): Promise<{ end: Answer; weight: number }> => {
    const user = await on.trader()
    const start = on.lag.weightOf(user.evm)
    await on.call('perp_open', order, user)
    const undisturbed = on.lag.weightOf(user.evm) - start
    await on.market.control('POST', '/faults', { door: 'exchange', type: 'order', ...fault })
    const from = on.lag.weightOf(user.evm)
    const end = await on.call('perp_open', order, user, { timeoutMs: 60_000 })
    return { end, weight: on.lag.weightOf(user.evm) - from - undisturbed }
  }

  test('a lost reply costs one question', async (t) => {
    const { end, weight } = await weigh({ effect: 'dropReply', count: 1 })
    t.diagnostic(`${weight} of weight`)
    assert.equal(end.outcome, 'executed', JSON.stringify(end))
    assert.ok(weight <= 4, String(weight))
  })

  test('a lost reply to an order whose status stays unknown costs one look at every record', async (t) => {
    on.lag.set({ statusMs: Number.POSITIVE_INFINITY })
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
