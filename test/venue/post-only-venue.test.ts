import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type VenueApp } from './venue-app.ts'

/** After an upgrade of its network the venue takes only post-only orders for some minutes. */

const refused = {
  status: 'ok',
  response: {
    type: 'order',
    data: { statuses: [{ error: 'Only post-only orders allowed immediately after network upgrade' }] },
  },
}
const sellsWithinMs = 40_000

describe('a venue that takes only post-only orders', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({ quiet: 'the test decides which orders the venue takes', lagging: true })
  })
  beforeEach(() => app.lag.set({}))
  after(() => app?.[Symbol.asyncDispose]())

  test('a stop of the gateway stays armed, and sells once the venue takes its order', async () => {
    await app.price('@1', 40)
    const user = await app.trader('1000')
    const bought = await app.call('spot_venue_buy', { asset: 'HYPE', size: '1', sl_price: '35' }, user)
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    const sentMs: number[] = []
    app.lag.set({
      intercept({ type }) {
        if (type !== 'order') return undefined
        sentMs.push(performance.now())
        return sentMs.length === 1 ? refused : undefined
      },
    })
    await app.price('@1', 34)
    const sales = await eventually(
      async () => {
        const { tasks } = await app.main.taskEngine.tasks.list(user.id, {
          skip: 0,
          limit: 20,
          kind: 'spot_trigger',
        })
        return tasks.some(({ outcome }) => outcome === 'executed') ? tasks : undefined
      },
      'the stop has sold',
      sellsWithinMs,
    )
    const codes = sales.map(({ error }) => error?.code ?? null)
    assert.deepEqual(codes.toSorted(), ['market_closed', null], JSON.stringify(sales))
    assert.equal(sentMs.length, 2)
    assert.ok(sentMs[1]! - sentMs[0]! > 5_000, 'each attempt is a task, so it waits')
  })

  test('an order that takes liquidity is rejected as an order in a closed market', async () => {
    const user = await app.trader()
    app.lag.set({ intercept: ({ type }) => (type === 'order' ? refused : undefined) })
    const opened = await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user)
    assert.deepEqual([opened.outcome, opened.error?.code], ['not_executed', 'market_closed'])
  })
})
