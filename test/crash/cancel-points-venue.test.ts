/** Cancels against a stopped instance: tasks whose effects are at the venue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CancelCase, type CancelContext, stopPoints } from './stop-points.ts'
import { cloidOf, executionsOf, recordOf } from './venue-record.ts'

const prepare = async ({ run }: CancelContext) => {
  assert.equal((await run('perp/setup', {})).outcome, 'executed')
}
const entries = async ({ app, venue, customer }: CancelContext, taskIds: string[]) => {
  const { orders } = await recordOf(venue, customer)
  const known = new Set((await executionsOf(app.admin, taskIds)).map((id) => cloidOf(id, 'entry')))
  return orders.filter(({ cloid }) => known.has(cloid ?? '')).length
}

const open: CancelCase = {
  kind: 'perp_open',
  path: 'perp/open',
  prepare,
  body: async () => ({ asset: 'BTC', side: 'long', size: '0.001', order_type: 'market', leverage: 5 }),
  landed: entries,
}

const buy: CancelCase = {
  kind: 'spot_buy',
  path: 'spot_venue/buy',
  prepare,
  body: async () => ({ asset: 'HYPE', size: '1' }),
  landed: entries,
}

const withdraw: CancelCase = {
  kind: 'perp_withdraw',
  path: 'perp/withdraw',
  prepare,
  body: async () => ({ amount_usd: '3' }),
  landed: async ({ venue, customer }) =>
    (await recordOf(venue, customer)).ledger.filter(({ delta }) => delta.type === 'withdraw').length,
}

const cancel: CancelCase = {
  kind: 'perp_cancel',
  path: 'perp/orders/cancel',
  prepare,
  async body({ run }) {
    const limit = { asset: 'BTC', side: 'long', size: '0.001', order_type: 'limit', limit_price: '96000' }
    const { outcome, result } = await run('perp/open', limit)
    assert.equal(outcome, 'executed')
    return { order_id: result?.order_id }
  },
  landed: async ({ venue, customer }) =>
    (await recordOf(venue, customer)).orders.filter(({ status }) => status === 'canceled').length,
}

const exits: CancelCase = {
  kind: 'perp_tp_sl',
  path: 'perp/tp-sl',
  async prepare(context) {
    await prepare(context)
    const entry = { asset: 'BTC', side: 'long', size: '0.01', leverage: 5 }
    assert.equal((await context.run('perp/open', entry)).outcome, 'executed')
  },
  body: async () => ({ asset: 'BTC', sl_price: '80000' }),
  async landed({ app, venue, customer }, taskIds) {
    const { orders } = await recordOf(venue, customer)
    const known = new Set((await executionsOf(app.admin, taskIds)).map((id) => cloidOf(id, 'sl')))
    return orders.filter(({ cloid }) => known.has(cloid ?? '')).length
  },
}

const setup: CancelCase = {
  kind: 'perp_setup',
  path: 'perp/setup',
  isOncePerUser: true,
  prepare: async () => {},
  body: async () => ({}),
  landed: async ({ venue, customer }) => {
    const { agents } = await venue<{ agents: { user: string }[] }>('GET', '/effects')
    return agents.filter(({ user }) => user.toLowerCase() === customer.address.toLowerCase()).length
  },
}

test('a cancel that arrives while an instance is stopped is rejected or moves nothing, at the venue', async (t) => {
  const points = await stopPoints()
  await points.raceAll([open, buy, withdraw, cancel, exits, setup], (line) => t.diagnostic(line))
})
