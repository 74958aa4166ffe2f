/** Cancels against a stopped instance: tasks that end positions and orders, and exits held by the gateway. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CancelCase, type CancelContext, stopPoints } from './stop-points.ts'
import { cloidOf, executionsOf, recordOf } from './venue-record.ts'

const ordersOf = async ({ venue, customer }: CancelContext) => (await recordOf(venue, customer)).orders
const entries = async (context: CancelContext, taskIds: string[]) => {
  const known = new Set((await executionsOf(context.app.admin, taskIds)).map((id) => cloidOf(id, 'entry')))
  return (await ordersOf(context)).filter(({ cloid }) => known.has(cloid ?? '')).length
}
const executed = async ({ run }: CancelContext, path: string, body: object) => {
  const { outcome, result } = await run(path, body)
  assert.equal(outcome, 'executed', path)
  return result ?? {}
}
/** The exits that the gateway holds for the customer. */
const triggersOf = async ({ app, customer }: CancelContext) =>
  (
    await app.admin.query<{ id: string; source_task_id: string; status: string }>(
      `select t.id, t.source_task_id, t.status from trigger_order t join app_user u on u.id = t.user_id where u.agent_id = $1`,
      [customer.agentId],
    )
  ).rows
const statusOfTrigger = async (context: CancelContext, id: unknown) =>
  (await triggersOf(context)).find((each) => each.id === id)?.status
const statusOfOrder = async (context: CancelContext, id: unknown) =>
  (await ordersOf(context)).find(({ oid }) => String(oid) === id)?.status

const close: CancelCase = {
  kind: 'perp_close',
  path: 'perp/close',
  async prepare(context) {
    await executed(context, 'perp/setup', {})
    await executed(context, 'perp/open', { asset: 'BTC', side: 'long', size: '0.1', leverage: 5 })
  },
  body: async () => ({ asset: 'BTC', size: '0.001' }),
  landed: entries,
}

let resting: string[] = []
const perpCancelAll: CancelCase = {
  kind: 'perp_cancel_all',
  path: 'perp/orders/cancel-all',
  async prepare(context) {
    resting = []
    await executed(context, 'perp/setup', {})
  },
  async body(context) {
    const last = resting.at(-1)
    // Orders that the previous task left open are not part of this one.
    if (last && (await statusOfOrder(context, last)) === 'open') {
      await executed(context, 'perp/orders/cancel', { order_id: last })
      resting.pop()
    }
    const limit = { asset: 'BTC', side: 'long', size: '0.001', order_type: 'limit', limit_price: '96000' }
    resting.push(String((await executed(context, 'perp/open', limit)).order_id))
    return {}
  },
  async landed(context) {
    const orders = await ordersOf(context)
    return orders.filter(({ oid, status }) => status === 'canceled' && resting.includes(String(oid))).length
  },
}

const buyHolding = async (context: CancelContext) => {
  await executed(context, 'perp/setup', {})
  await executed(context, 'spot_venue/buy', { asset: 'HYPE', size: '40' })
}
const exit = { asset: 'HYPE', size: '1', sl_price: '30' }
const newExit = async (context: CancelContext): Promise<string> => {
  const { sl_oids } = await executed(context, 'spot_venue/tp-sl', exit)
  return String((sl_oids as string[])[0])
}

const sell: CancelCase = {
  kind: 'spot_sell',
  path: 'spot_venue/sell',
  prepare: buyHolding,
  body: async () => ({ asset: 'HYPE', size: '1' }),
  landed: entries,
}

const spotExits: CancelCase = {
  kind: 'spot_tp_sl',
  path: 'spot_venue/tp-sl',
  prepare: buyHolding,
  body: async () => exit,
  landed: async (context, taskIds) =>
    (await triggersOf(context)).filter(({ source_task_id }) => taskIds.includes(source_task_id)).length,
}

const spotCancel: CancelCase = {
  kind: 'spot_cancel',
  path: 'spot_venue/orders/cancel',
  prepare: buyHolding,
  body: async (context) => ({ order_id: await newExit(context) }),
  landed: async (context) =>
    (await triggersOf(context)).filter(({ status }) => status === 'cancelled').length,
}

let pairs: { exit: string; order: string }[] = []
const spotCancelAll: CancelCase = {
  kind: 'spot_cancel_all',
  path: 'spot_venue/orders/cancel-all',
  async prepare(context) {
    pairs = []
    await buyHolding(context)
  },
  async body(context) {
    const last = pairs.at(-1)
    if (last && (await statusOfOrder(context, last.order)) === 'open') {
      for (const order_id of [last.order, last.exit])
        await executed(context, 'spot_venue/orders/cancel', { order_id })
      pairs.pop()
    }
    const limit = { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: '50' }
    const { order_id } = await executed(context, 'spot_venue/sell', limit)
    pairs.push({ exit: await newExit(context), order: String(order_id) })
    return {}
  },
  async landed(context) {
    let count = 0
    for (const pair of pairs) {
      const isExitCancelled = (await statusOfTrigger(context, pair.exit)) === 'cancelled'
      const isOrderCancelled = (await statusOfOrder(context, pair.order)) === 'canceled'
      assert.equal(isExitCancelled, isOrderCancelled, 'both of a pair are cancelled, or none')
      if (isOrderCancelled) count += 1
    }
    return count
  },
}

test('a cancel that arrives while an instance is stopped is rejected or ends nothing, of positions and orders', async (t) => {
  const points = await stopPoints()
  await points.raceAll([close, perpCancelAll], (line) => t.diagnostic(line))
})

test('a cancel that arrives while an instance is stopped is rejected or ends nothing, of spot and its gateway exits', async (t) => {
  const points = await stopPoints()
  await points.raceAll([spotCancel, spotCancelAll, spotExits, sell], (line) => t.diagnostic(line))
})
