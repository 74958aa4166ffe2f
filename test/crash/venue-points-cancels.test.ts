/** kill -9 at the boundaries of what cancels orders, and exits that the gateway keeps. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { type Ask, type Deed, openVenuePoints, type Stand } from './venue-points.ts'
import { recordOf } from './venue-record.ts'

const executed = async (ask: Ask, path: string, body: object) => {
  const told = await ask(path, randomUUID(), body)
  assert.equal(told.outcome, 'executed', JSON.stringify(told))
  return told.result
}
/** What the task of a customer is to cancel. */
const targets = new WeakMap<Stand, string[]>()
const target = (stand: Stand) => ({ order_id: targets.get(stand)![0] })

const ordersOf = async ({ venue, customer }: Stand, status: string) =>
  (await recordOf(venue, customer)).orders
    .filter((order) => order.status === status)
    .map(({ oid }) => String(oid))
const exitsOf = async ({ scene, customer }: Stand, status: string) =>
  (
    await scene.admin.query<{ id: string }>(
      `select t.id from trigger_order t join app_user u on u.id = t.user_id where u.agent_id = $1 and t.status = $2`,
      [customer.agentId, status],
    )
  ).rows.map(({ id }) => id)

const cancel: Deed = {
  kind: 'perp_cancel',
  path: 'perp/orders/cancel',
  body: (_n, stand) => target(stand),
  async before(stand, ask) {
    const limit = { asset: 'BTC', side: 'long', size: '0.001', order_type: 'limit', limit_price: '90000' }
    targets.set(stand, [(await executed(ask, 'perp/open', limit)).order_id])
  },
  async judge(stand, { result }) {
    assert.equal(result.order_id, targets.get(stand)![0])
    assert.deepEqual(await ordersOf(stand, 'open'), [])
    assert.equal((await ordersOf(stand, 'canceled')).length, stand.told.length)
  },
}

const holding = async (_stand: Stand, ask: Ask) =>
  void (await executed(ask, 'spot_venue/buy', { asset: 'HYPE', size: '40' }))
const newExit = async (ask: Ask): Promise<string> =>
  (await executed(ask, 'spot_venue/tp-sl', { asset: 'HYPE', size: '1', sl_price: '30' })).sl_oids[0]!

const cancelExit: Deed = {
  kind: 'spot_cancel',
  path: 'spot_venue/orders/cancel',
  isLocal: true,
  body: (_n, stand) => target(stand),
  prepare: holding,
  async before(stand, ask) {
    targets.set(stand, [await newExit(ask)])
  },
  async judge(stand) {
    assert.deepEqual(await exitsOf(stand, 'armed'), [])
    assert.equal((await exitsOf(stand, 'cancelled')).length, stand.told.length)
  },
}

const cancelAll: Deed = {
  kind: 'spot_cancel_all',
  path: 'spot_venue/orders/cancel-all',
  body: () => ({}),
  prepare: holding,
  async before(stand, ask) {
    const limit = { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: '50' }
    const { order_id } = await executed(ask, 'spot_venue/sell', limit)
    targets.set(stand, [order_id, await newExit(ask)])
  },
  async judge(stand, last) {
    assert.deepEqual(await exitsOf(stand, 'armed'), [])
    assert.deepEqual(await ordersOf(stand, 'open'), [])
    const { cancelled, not_cancelled, orders } = last.result as unknown as {
      cancelled: number
      not_cancelled: number
      orders: { order_id: string }[]
    }
    assert.deepEqual([cancelled, not_cancelled], [2, 0], JSON.stringify(last.result))
    assert.deepEqual(orders.map(({ order_id }) => order_id).sort(), targets.get(stand)!.toSorted())
  },
}

test('killed at any point of a cancel, it happens exactly once', async (t) => {
  await using ground = await openVenuePoints()
  for (const deed of [cancel, cancelExit, cancelAll]) t.diagnostic(await ground.killAll(deed))
})
