/** kill -9 at the boundaries of operations on the orders of an open position. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { type CaseContext, casesOfRun, type TaskCase, venuePoints } from './venue-points.ts'
import { cloidOf, executionsOf, recordOf } from './venue-record.ts'

const openOrders = async ({ venue, customer }: CaseContext) =>
  (await recordOf(venue, customer)).orders.filter(({ status }) => status === 'open')

const tpSl: TaskCase = {
  kind: 'perp_tp_sl',
  path: 'perp/tp-sl',
  body: (n) => ({ asset: 'BTC', sl_price: String(80_000 + n), tp_price: String(120_000 + n) }),
  async prepare(_context, send) {
    const entry = { asset: 'BTC', side: 'long', size: '0.01', leverage: 10, sl_price: '79000' }
    assert.equal((await send('perp/open', 'held', entry)).outcome, 'executed')
  },
  async verify(context, last) {
    const [execution = ''] = await executionsOf(context.app.admin, [last.task_id])
    const legs = ['tp', 'sl'].map((leg) => cloidOf(execution, leg))
    const open = await openOrders(context)
    assert.deepEqual(open.map(({ cloid }) => cloid).sort(), legs.sort(), 'the last pair and no other')
    const { orders } = await recordOf(context.venue, context.customer)
    const placed = orders.filter(({ cloid }) => legs.includes(cloid ?? ''))
    assert.equal(placed.length, 2, 'each exit is placed once')
  },
}

const cancelAll: TaskCase = {
  kind: 'perp_cancel_all',
  path: 'perp/orders/cancel-all',
  body: () => ({}),
  async before(_context, send) {
    const limit = { side: 'long', order_type: 'limit', leverage: 10 }
    const btc = { ...limit, asset: 'BTC', size: '0.001', limit_price: '90000' }
    const eth = { ...limit, asset: 'ETH', size: '0.01', limit_price: '2500' }
    for (const body of [btc, eth])
      assert.equal((await send('perp/open', randomUUID(), body)).outcome, 'executed')
  },
  async verify(context, last) {
    assert.deepEqual(await openOrders(context), [])
    const { cancelled, not_cancelled: left } = last.result as unknown as Record<string, number>
    assert.deepEqual([cancelled, left], [2, 0], JSON.stringify(last.result))
  },
}

const cases = [tpSl, cancelAll]
for (const taskCase of casesOfRun('exits', cases))
  test(`killed at any point of ${taskCase.kind}, it happens exactly once`, async (t) => {
    const points = await venuePoints()
    t.diagnostic(await points.killAll(taskCase))
  })
