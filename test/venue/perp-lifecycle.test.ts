import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { fromUnits, toUnits } from '#kernel/money/money.ts'
import { createVenueApp, type VenueApp } from './venue-app.ts'

describe('perpetuals at the local venue', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp()
    await app.price('BTC', 100_000)
    await app.price('ETH', 3_000)
  })
  after(() => app?.[Symbol.asyncDispose]())

  test('a market has all figures that a trader sorts by', async () => {
    const user = await app.addUser()
    const all = await app.call('perp_markets', {}, user)
    assert.equal(all.total, all.markets.length)
    const { markets } = await app.call('perp_markets', { search_text: 'btc' }, user)
    assert.deepEqual(
      markets.map(({ symbol, max_leverage, size_decimals, min_order_usd, mark_price, routable }) => [
        symbol,
        max_leverage,
        size_decimals,
        min_order_usd,
        mark_price,
        routable,
      ]),
      [['BTC', 40, 5, '10', '100000', true]],
    )
    assert.deepEqual(
      all.markets.filter(({ routable }) => !routable).map(({ symbol, reason }) => [symbol, reason]),
      [['MATIC', 'delisted']],
    )
  })

  test('a trading key is created, approved, and replaced by another one', async () => {
    const user = await app.addUser()
    await app.credit(user, '100')
    const done = await app.call('perp_setup', {}, user)
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
    const status = await app.call('perp_setup_status', {}, user)
    assert.equal(status.setup_complete, true)
    assert.equal(status.api_wallet_address, done.result.api_wallet_address)
    assert.deepEqual(
      status.steps.map(({ key, done: said }) => [key, said]),
      [
        ['agent_key', true],
        ['account_activated', true],
        ['agent_approved', true],
      ],
    )
    const again = await app.call('perp_setup', {}, user)
    assert.equal(again.result.api_wallet_address, status.api_wallet_address)
    const rotated = await app.call('perp_setup', { rotate: true }, user)
    assert.equal(rotated.outcome, 'executed')
    assert.notEqual(rotated.result.api_wallet_address, status.api_wallet_address)
    const opened = await app.call('perp_open', { asset: 'ETH', side: 'long', notional_usd: '50' }, user)
    assert.equal(opened.outcome, 'executed', JSON.stringify(opened))
  })

  test('a long with a bracket is opened, listed, and closed', async () => {
    const user = await app.trader()
    const opened = await app.call(
      'perp_open',
      { asset: 'BTC', side: 'long', size: '0.01', leverage: 2, tp_price: '120000', sl_price: '90000' },
      user,
    )
    assert.deepEqual([opened.status, opened.outcome], ['completed', 'executed'], JSON.stringify(opened))
    const { result, fills } = opened
    assert.equal(result.order_status, 'filled')
    assert.equal(result.filled_size, '0.01')
    assert.ok(Number(result.avg_price) > 99_000 && Number(result.avg_price) <= 100_500)
    assert.ok(Number(result.fee) > 0)
    assert.equal(result.tp_oids.length, 1)
    assert.equal(result.sl_oids.length, 1)
    assert.deepEqual([...new Set(fills.map(({ order_id }) => order_id))], [result.order_id])

    const shown = await app.call('perp_orders', {}, user)
    const [position] = shown.positions
    assert.deepEqual(
      [position?.asset, position?.side, position?.size, position?.leverage],
      ['BTC', 'long', '0.01', 2],
    )
    assert.deepEqual([position?.tp_oids, position?.sl_oids], [result.tp_oids, result.sl_oids])
    assert.deepEqual(
      shown.orders.map(({ task_id, tpsl, trigger_price }) => [task_id, tpsl, trigger_price]).sort(),
      [
        [opened.task_id, 'sl', '90000'],
        [opened.task_id, 'tp', '120000'],
      ],
    )
    assert.equal(shown.mark_prices.BTC, '100000')

    const part = await app.call('perp_close', { asset: 'hl:perp:BTC', size: '0.004' }, user)
    assert.deepEqual([part.outcome, part.result.filled_size], ['executed', '0.004'], JSON.stringify(part))
    const rest = await app.call('perp_close', { asset: 'BTC-PERP' }, user)
    assert.deepEqual([rest.outcome, rest.result.filled_size], ['executed', '0.006'], JSON.stringify(rest))
    assert.deepEqual((await app.call('perp_orders', {}, user)).positions, [])
  })

  test('a limit order rests, and is cancelled by its id', async () => {
    const user = await app.trader()
    const opened = await app.call(
      'perp_open',
      { asset: 'ETH', is_buy: true, size: '0.1', order_type: 'limit', limit_price: '2500', tif: 'alo' },
      user,
    )
    assert.deepEqual(
      [opened.outcome, opened.result.order_status],
      ['executed', 'resting'],
      JSON.stringify(opened),
    )
    const { order_id } = opened.result
    const [order] = (await app.call('perp_orders', {}, user)).orders
    assert.deepEqual([order?.order_id, order?.task_id], [order_id, opened.task_id])
    const cancelled = await app.call('perp_cancel', { oid: Number(order_id), asset: 'ETH' }, user)
    assert.deepEqual(
      [cancelled.outcome, cancelled.result.venue_status],
      ['executed', 'canceled'],
      JSON.stringify(cancelled),
    )
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
  })

  test('money moves from the wallet to the venue and back, and a waiting key is approved with the deposit', async () => {
    const user = await app.addUser()
    await app.fundWallet(user, '1000')
    const early = await app.call('perp_setup', {}, user)
    assert.deepEqual([early.status, early.outcome], ['completed', 'partial'], JSON.stringify(early))
    assert.equal(early.result.setup_complete, false)
    const funded = await app.call('perp_fund', { amount_usd: '600' }, user)
    assert.deepEqual([funded.status, funded.outcome], ['completed', 'executed'], JSON.stringify(funded))
    assert.deepEqual([funded.result.amount, funded.result.amount_usd], ['600000000', '600'])
    const status = await app.call('perp_setup_status', {}, user)
    assert.equal(status.setup_complete, true, JSON.stringify(status))
    const taken = await app.call('perp_withdraw', { amount_usd: '100' }, user)
    assert.deepEqual([taken.status, taken.outcome], ['completed', 'executed'], JSON.stringify(taken))
    const { amount, amount_usd, fee_usd, withdrawn_usd } = taken.result as Record<string, unknown>
    assert.deepEqual([amount, amount_usd, fee_usd, withdrawn_usd], ['99000000', '99', '1', '100'])
    assert.equal((await app.call('perp_orders', {}, user)).account.withdrawable_usd, '500')
    const { tokens } = await app.main.chain.balances(user.evm, [app.main.usdc])
    assert.equal(tokens[0], 499_000_000n)
  })

  test('dollars on the spot side are transferred where they are needed, and the result says so', async () => {
    const user = await app.trader('100')
    await app.credit(user, '400', 'USDC')
    const order = { asset: 'ETH', side: 'long', leverage: 1 }
    await app.market.control('POST', '/faults', {
      endpoint: 'exchange',
      type: 'usdClassTransfer',
      effect: 'dropReply',
      count: 1,
    })
    const opened = await app.call('perp_open', { ...order, size: '0.1' }, user)
    assert.equal(opened.outcome, 'executed', JSON.stringify(opened))
    const moved = Number(opened.result.moved_from_spot_usd)
    assert.ok(moved > 200 && moved < 203, String(moved))
    assert.equal(
      (await app.venueState(user)).ledger.filter(({ delta }) => delta.type === 'accountClassTransfer').length,
      1,
    )
    await assert.rejects(app.call('perp_open', { ...order, size: '0.2' }, user), {
      code: 'insufficient_balance',
    })
    await app.call('perp_close', { asset: 'ETH' }, user)
    const { account } = await app.call('perp_orders', {}, user)
    const { total, hold } = (await app.venueState(user)).spot[0]!
    const free = toUnits(account.withdrawable_usd, 6) + toUnits(total, 8) / 100n - toUnits(hold, 8) / 100n
    await assert.rejects(app.call('perp_withdraw', { amount_usd: '501' }, user), {
      code: 'insufficient_balance',
      message: `The withdrawal needs 501 USDC, but only ${fromUnits(free, 6)} USDC is available`,
      extras: {
        symbol: 'USDC',
        token: 'USDC',
        decimals: 6,
        required: '501',
        available: fromUnits(free, 6),
      },
    })
    const more = Math.floor(Number(account.withdrawable_usd)) + 50
    const home = await app.call('perp_withdraw', { amount_usd: String(more) }, user)
    assert.equal(home.outcome, 'executed', JSON.stringify(home))
    assert.ok(Number(home.result.moved_from_spot_usd) > 49)
  })

  test('an order that the venue would certainly reject is rejected before a task exists', async () => {
    const user = await app.trader()
    const open = (body: object) => app.call('perp_open', { asset: 'ETH', notional_usd: '60', ...body }, user)
    await assert.rejects(open({ side: 'long', reduce_only: true }), { code: 'no_position' })
    assert.equal((await open({ side: 'long', leverage: 3 })).outcome, 'executed')
    await assert.rejects(open({ side: 'long', is_cross: false }), { code: 'conflict' })
    await assert.rejects(open({ side: 'long', reduce_only: true }), { code: 'no_position' })
    await assert.rejects(open({ side: 'short', reduce_only: true, sl_price: '3500' }), { code: 'validation' })
    const less = await open({ side: 'short', reduce_only: true, notional_usd: '30' })
    assert.equal(less.outcome, 'executed', JSON.stringify(less))
    const isolated = await app.call('perp_open', { asset: 'HPOS', side: 'long', notional_usd: '20' }, user)
    assert.equal(isolated.outcome, 'executed', JSON.stringify(isolated))
    const { positions } = await app.call('perp_orders', {}, user)
    assert.deepEqual(
      positions.map(({ asset, size, leverage }) => [asset, Number(size) > 0, leverage]),
      [
        ['ETH', true, 3],
        ['HPOS', true, 1],
      ],
    )
  })
})
