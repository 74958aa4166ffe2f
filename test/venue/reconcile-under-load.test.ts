import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { nextRandom } from '#world/venue-core/random.ts'
import { testFunding } from '../harness/conservation.ts'
import { eventually } from '../harness/gateway.ts'
import { accountRecords, startReconciler } from './reconcilers.ts'
import { createVenueApp, type User, type VenueApp } from './venue-app.ts'

describe('a busy venue raises no false alarm', () => {
  let app: VenueApp
  let its: ReturnType<typeof accountRecords>
  before(async () => {
    app = await createVenueApp({
      weight: 1_000_000,
      uncounted: 'a reconciler that polls every 400 ms spends a hundred times its budget',
    })
    its = accountRecords(app)
    await app.price('BTC', 100_000)
    await app.price('ETH', 3_000)
    await app.price('@1', 40)
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  /** Rejections are expected: no margin, no position, nothing to match. */
  const tried = (name: string, input: object, user: User) =>
    app.call(name, input, user).catch((fault: unknown) => {
      if (!(fault instanceof Fault)) throw fault
      return undefined
    })

  const act = async (user: User, roll: () => number) => {
    const asset = roll() < 0.5 ? 'BTC' : 'ETH'
    const size = asset === 'BTC' ? `0.00${1 + Math.floor(roll() * 9)}` : `0.${10 + Math.floor(roll() * 89)}`
    const side = roll() < 0.5 ? 'long' : 'short'
    const open = { asset, side, size, leverage: 1 + Math.floor(roll() * 20), is_cross: roll() < 0.7 }
    const what = roll()
    if (what < 0.25) return tried('perp_open', open, user)
    if (what < 0.35) {
      const exits = { tp_price: '101000', sl_price: '98500' }
      return tried('perp_open', { ...open, asset: 'BTC', size: '0.002', side: 'long', ...exits }, user)
    }
    if (what < 0.43)
      return tried(
        'spot_venue_buy',
        { asset: 'HYPE', size: `${1 + Math.floor(roll() * 4)}.${10 + Math.floor(roll() * 89)}` },
        user,
      )
    if (what < 0.47) return tried('spot_venue_sell', { asset: 'HYPE' }, user)
    if (what < 0.5)
      return tried(
        'spot_venue_buy',
        { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: '39' },
        user,
      )
    if (what < 0.6)
      return tried(
        'perp_open',
        {
          ...open,
          tp_price: undefined,
          order_type: 'limit',
          limit_price: asset === 'BTC' ? '99000' : '2950',
        },
        user,
      )
    if (what < 0.75) return tried('perp_close', { asset }, user)
    if (what < 0.8) return tried('perp_withdraw', { amount_usd: '3' }, user)
    if (what < 0.85) return app.credit(user, '25')
    if (what < 0.9) {
      const { orders } = await app.call('perp_orders', {}, user)
      return orders[0] && tried('perp_cancel', { order_id: orders[0].order_id }, user)
    }
    if (what < 0.95) return app.credit(user, '40', 'USDC')
    return app.credit(user, '3.5', 'PURR')
  }

  test('hundreds of orders with liquidations, funding, transfers and moving prices are all explained', async () => {
    await using reconciler = startReconciler(app, app.main, { followedUsersMax: 3, settleMs: 3_000 })
    const users = await Promise.all([1, 2, 3, 4, 5, 6].map(() => app.trader('2000')))
    await Promise.all(users.map((user) => its.waitForBaseline(user)))
    const state = { at: 20_261 }
    const roll = () => nextRandom(state)
    for (let round = 0; round < 55; round += 1) {
      await Promise.all(users.map((user) => act(user, roll)))
      if (round % 5 === 0) await app.price('BTC', Math.round(100_000 * (0.97 + 0.06 * roll())))
      if (round % 7 === 0) await app.price('ETH', Math.round(3_000 * (0.96 + 0.08 * roll())))
      if (round % 6 === 0) await app.price('@1', Math.round(40 * (0.96 + 0.08 * roll()) * 100) / 100)
      if (round % 11 === 0) await app.market.control('POST', '/funding')
      if (round % 13 === 0) await app.market.control('POST', '/ws/drop')
    }
    // Dollars on the spot side are transferred automatically, and an account with too much leverage is liquidated.
    const poor = await app.trader('1000')
    users.push(poor)
    await its.waitForBaseline(poor)
    await app.price('BTC', 100_000)
    const open = { asset: 'BTC', side: 'long', notional_usd: '30000', leverage: 40 }
    const far = await app.call('perp_open', open, poor)
    assert.equal(far.outcome, 'executed', JSON.stringify(far))
    await app.price('BTC', 96_000)
    await eventually(async () => {
      // After a comparison before the venue's reads were current, the next one comes minutes later.
      await its.sql(
        `update venue_account set next_at = now() where user_id = $1 and next_at > now() + interval '1 second'`,
        [poor.id],
      )
      return (await its.events(poor, 'position.liquidated')).length > 0 ? true : undefined
    }, 'a liquidation')
    for (const user of users) {
      if ((await its.events(user, 'position.liquidated')).length > 0)
        testFunding.excludeUser(user.evm, 'the venue covers the loss of a liquidation below zero')
      const row = await its.waitForMatch(user)
      assert.equal(row.state, 'active', row.reason ?? '')
      const { fills } = await app.venueState(user)
      const reported = fills.map(({ tid }) => String(tid)).sort()
      assert.deepEqual((await its.fills(user)).map(({ trade_id }) => String(trade_id)).sort(), reported)
      assert.deepEqual(
        (await its.events(user, 'order.filled')).map(({ fill_id }) => fill_id).sort(),
        reported,
      )
      assert.equal((await its.events(user, 'security.flagged')).length, 0)
    }
    const orders = (await Promise.all(users.map((user) => app.venueState(user)))).flatMap(
      (truth) => truth.orders,
    )
    const [fundings] = await its.sql<{ n: number }>(
      `select count(*)::integer as n from venue_ledger_entry where kind = 'funding'`,
    )
    const adjusted = await its.sql<{ balance_key: string; amount: string; reason: string }>(
      // With foreign records of unknown kinds, a reason names all of them.
      `select balance_key, amount::text, reason from venue_ledger_entry
       where kind = 'adjustment' and 'liquidation' <> all (string_to_array(reason, ', '))`,
    )
    assert.ok(orders.length >= 150, `${orders.length} orders`)
    const [spots] = await its.sql<{ n: number }>(
      'select count(*)::integer as n from venue_fill where base is not null',
    )
    assert.ok(fundings!.n > 0 && spots!.n > 10, `${fundings!.n} fundings, ${spots!.n} fills of spot`)
    const [exits] = await its.sql<{ n: number }>(
      `select count(*)::integer as n from venue_fill f join venue_order o on o.cloid = f.cloid where o.leg in ('tp', 'sl')`,
    )
    assert.ok(exits!.n > 0, 'no exit has fired')
    assert.deepEqual(adjusted, [])
    assert.equal(reconciler.counts().mismatches, 0)
  })

  test('an idle account costs 4 of weight for each comparison', async () => {
    const user = await app.trader()
    const idle = await app.instance({ weight: 1_000_000 })
    await using reconciler = startReconciler(app, idle, { followedUsersMax: 0 })
    await its.waitForBaseline(user)
    await its.sql(
      `update venue_account set owner = $2, lease_until = now() + interval '1 hour' where user_id = $1`,
      [user.id, idle.taskEngine.instanceId],
    )
    await its.waitForMatch(user)
    const before = { weight: idle.budget.used(), comparisons: reconciler.counts().comparisons }
    for (let n = 0; n < 5; n += 1) await its.waitForMatch(user)
    // A comparison of balances that the venue shows late is repeated.
    const comparisons = reconciler.counts().comparisons - before.comparisons
    assert.ok(comparisons >= 5, `${comparisons} comparisons`)
    assert.equal(idle.budget.used() - before.weight, 4 * comparisons)
  })
})
