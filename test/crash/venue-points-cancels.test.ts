/** kill -9 at the boundaries of cancels of orders, and of exits held by the gateway. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { type CaseContext, casesOfRun, type SendRequest, type TaskCase, venuePoints } from './venue-points.ts'
import { recordOf } from './venue-record.ts'

const executed = async (send: SendRequest, path: string, body: object) => {
  const reply = await send(path, randomUUID(), body)
  assert.equal(reply.outcome, 'executed', JSON.stringify(reply))
  return reply.result
}
/** The orders that the task of a customer cancels. */
const targets = new WeakMap<CaseContext, string[]>()
const target = (context: CaseContext) => ({ order_id: targets.get(context)![0] })

const ordersOf = async ({ venue, customer }: CaseContext, status: string) =>
  (await recordOf(venue, customer)).orders
    .filter((order) => order.status === status)
    .map(({ oid }) => String(oid))
const exitsOf = async ({ app, customer }: CaseContext, status: string) =>
  (
    await app.admin.query<{ id: string }>(
      `select t.id from trigger_order t join app_user u on u.id = t.user_id where u.agent_id = $1 and t.status = $2`,
      [customer.agentId, status],
    )
  ).rows.map(({ id }) => id)

const cancel: TaskCase = {
  kind: 'perp_cancel',
  path: 'perp/orders/cancel',
  body: (_n, context) => target(context),
  async before(context, send) {
    const limit = { asset: 'BTC', side: 'long', size: '0.001', order_type: 'limit', limit_price: '90000' }
    targets.set(context, [(await executed(send, 'perp/open', limit)).order_id])
  },
  async verify(context, { result }) {
    assert.equal(result.order_id, targets.get(context)![0])
    assert.deepEqual(await ordersOf(context, 'open'), [])
    assert.equal((await ordersOf(context, 'canceled')).length, context.replies.length)
  },
}

const buyHolding = async (_context: CaseContext, send: SendRequest) =>
  void (await executed(send, 'spot_venue/buy', { asset: 'HYPE', size: '40' }))
const newExit = async (send: SendRequest): Promise<string> =>
  (await executed(send, 'spot_venue/tp-sl', { asset: 'HYPE', size: '1', sl_price: '30' })).sl_oids[0]!

const cancelExit: TaskCase = {
  kind: 'spot_cancel',
  path: 'spot_venue/orders/cancel',
  isLocal: true,
  body: (_n, context) => target(context),
  prepare: buyHolding,
  async before(context, send) {
    targets.set(context, [await newExit(send)])
  },
  async verify(context) {
    assert.deepEqual(await exitsOf(context, 'armed'), [])
    assert.equal((await exitsOf(context, 'cancelled')).length, context.replies.length)
  },
}

const cancelAll: TaskCase = {
  kind: 'spot_cancel_all',
  path: 'spot_venue/orders/cancel-all',
  body: () => ({}),
  prepare: buyHolding,
  async before(context, send) {
    const limit = { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: '50' }
    const { order_id } = await executed(send, 'spot_venue/sell', limit)
    targets.set(context, [order_id, await newExit(send)])
  },
  async verify(context, last) {
    assert.deepEqual(await exitsOf(context, 'armed'), [])
    assert.deepEqual(await ordersOf(context, 'open'), [])
    const { cancelled, not_cancelled, orders } = last.result as unknown as {
      cancelled: number
      not_cancelled: number
      orders: { order_id: string }[]
    }
    assert.deepEqual([cancelled, not_cancelled], [2, 0], JSON.stringify(last.result))
    assert.deepEqual(orders.map(({ order_id }) => order_id).sort(), targets.get(context)!.toSorted())
  },
}

test('a cancel killed at any point happens exactly once', async (t) => {
  const points = await venuePoints()
  const cases = [cancel, cancelExit, cancelAll]
  for (const taskCase of casesOfRun('cancels', cases)) t.diagnostic(await points.killAll(taskCase))
})
