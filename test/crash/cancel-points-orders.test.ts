/** Cancels against a stopped instance: tasks that end positions and orders, and exits that the gateway keeps. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CancelCase, openStopPoints, type Setting } from './stop-points.ts'
import { cloidOf, recordOf } from './venue-record.ts'

const ordersOf = async ({ venue, customer }: Setting) => (await recordOf(venue, customer)).orders
const entries = async (setting: Setting, taskIds: string[]) => {
  const known = new Set(taskIds.map((id) => cloidOf(id, 'entry')))
  return (await ordersOf(setting)).filter(({ cloid }) => known.has(cloid ?? '')).length
}
const executed = async ({ run }: Setting, path: string, body: object) => {
  const { outcome, result } = await run(path, body)
  assert.equal(outcome, 'executed', path)
  return result ?? {}
}
/** The exits that the gateway keeps for the customer. */
const triggersOf = async ({ scene, customer }: Setting) =>
  (
    await scene.admin.query<{ id: string; origin: string; status: string }>(
      `select t.id, t.origin, t.status from trigger_order t join app_user u on u.id = t.user_id where u.agent_id = $1`,
      [customer.agentId],
    )
  ).rows
const statusOfTrigger = async (setting: Setting, id: unknown) =>
  (await triggersOf(setting)).find((each) => each.id === id)?.status
const statusOfOrder = async (setting: Setting, id: unknown) =>
  (await ordersOf(setting)).find(({ oid }) => String(oid) === id)?.status

const close: CancelCase = {
  kind: 'perp_close',
  path: 'perp/close',
  async prepare(setting) {
    await executed(setting, 'perp/setup', {})
    await executed(setting, 'perp/open', { asset: 'BTC', side: 'long', size: '0.1', leverage: 5 })
  },
  body: async () => ({ asset: 'BTC', size: '0.001' }),
  landed: entries,
}

let resting: string[] = []
const perpCancelAll: CancelCase = {
  kind: 'perp_cancel_all',
  path: 'perp/orders/cancel-all',
  async prepare(setting) {
    resting = []
    await executed(setting, 'perp/setup', {})
  },
  async body(setting) {
    const last = resting.at(-1)
    // What the task before has left open is not for this one to cancel.
    if (last && (await statusOfOrder(setting, last)) === 'open') {
      await executed(setting, 'perp/orders/cancel', { order_id: last })
      resting.pop()
    }
    const limit = { asset: 'BTC', side: 'long', size: '0.001', order_type: 'limit', limit_price: '96000' }
    resting.push(String((await executed(setting, 'perp/open', limit)).order_id))
    return {}
  },
  async landed(setting) {
    const orders = await ordersOf(setting)
    return orders.filter(({ oid, status }) => status === 'canceled' && resting.includes(String(oid))).length
  },
}

const holding = async (setting: Setting) => {
  await executed(setting, 'perp/setup', {})
  await executed(setting, 'spot_venue/buy', { asset: 'HYPE', size: '40' })
}
const exit = { asset: 'HYPE', size: '1', sl_price: '30' }
const newExit = async (setting: Setting): Promise<string> => {
  const { sl_oids } = await executed(setting, 'spot_venue/tp-sl', exit)
  return String((sl_oids as string[])[0])
}

const sell: CancelCase = {
  kind: 'spot_sell',
  path: 'spot_venue/sell',
  prepare: holding,
  body: async () => ({ asset: 'HYPE', size: '1' }),
  landed: entries,
}

const spotExits: CancelCase = {
  kind: 'spot_tp_sl',
  path: 'spot_venue/tp-sl',
  prepare: holding,
  body: async () => exit,
  landed: async (setting, taskIds) =>
    (await triggersOf(setting)).filter(({ origin }) => taskIds.includes(origin)).length,
}

const spotCancel: CancelCase = {
  kind: 'spot_cancel',
  path: 'spot_venue/orders/cancel',
  prepare: holding,
  body: async (setting) => ({ order_id: await newExit(setting) }),
  landed: async (setting) =>
    (await triggersOf(setting)).filter(({ status }) => status === 'cancelled').length,
}

let pairs: { exit: string; order: string }[] = []
const spotCancelAll: CancelCase = {
  kind: 'spot_cancel_all',
  path: 'spot_venue/orders/cancel-all',
  async prepare(setting) {
    pairs = []
    await holding(setting)
  },
  async body(setting) {
    const last = pairs.at(-1)
    if (last && (await statusOfOrder(setting, last.order)) === 'open') {
      for (const order_id of [last.order, last.exit])
        await executed(setting, 'spot_venue/orders/cancel', { order_id })
      pairs.pop()
    }
    const limit = { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: '50' }
    const { order_id } = await executed(setting, 'spot_venue/sell', limit)
    pairs.push({ exit: await newExit(setting), order: String(order_id) })
    return {}
  },
  async landed(setting) {
    let count = 0
    for (const pair of pairs) {
      const isExitGone = (await statusOfTrigger(setting, pair.exit)) === 'cancelled'
      const isOrderGone = (await statusOfOrder(setting, pair.order)) === 'canceled'
      assert.equal(isExitGone, isOrderGone, 'both of a pair are cancelled, or none')
      if (isOrderGone) count += 1
    }
    return count
  },
}

test('a cancel that arrives while an instance is stopped is refused or ends nothing, of positions and orders', async (t) => {
  await using points = await openStopPoints()
  for (const each of [close, perpCancelAll]) t.diagnostic(await points.raceAll(each))
})

test('a cancel that arrives while an instance is stopped is refused or ends nothing, of spot and kept exits', async (t) => {
  await using points = await openStopPoints()
  for (const each of [spotCancel, spotCancelAll, spotExits, sell]) t.diagnostic(await points.raceAll(each))
})
