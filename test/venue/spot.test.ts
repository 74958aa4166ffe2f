import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

const units = (text: string): bigint => {
  const [, sign = '', whole = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d*))?$/.exec(text) ?? []
  return BigInt(`${sign}${whole}${fraction.padEnd(8, '0').slice(0, 8)}`)
}
const typeOf = async (asking: Promise<unknown>): Promise<string | undefined> =>
  asking.then(
    () => undefined,
    (fault: unknown) => {
      if (fault instanceof Fault) return fault.issues[0]?.type ?? fault.code
      throw fault
    },
  )

/** The error of a shortage has its figures in the sentence and as fields. */
async function lackOf(asking: Promise<unknown>) {
  const fault = await asking.catch((thrown: unknown) => thrown)
  assert.ok(fault instanceof Fault && fault.code === 'insufficient_balance', JSON.stringify(fault))
  return { message: fault.message, ...fault.extras }
}

describe('spot against USDC', () => {
  let app: VenueApp
  let user: User
  before(async () => {
    app = await createVenueApp()
  })
  beforeEach(async () => {
    await app.market.control('DELETE', '/faults', {})
    await app.price('@1', 40)
    user = await app.trader('1000')
  })
  after(() => app?.[Symbol.asyncDispose]())

  const call = (name: string, input: object, who = user): Promise<TaskAnswer> =>
    app.call(`spot_venue_${name}`, input, who)
  const held = async (asset: string) =>
    (await call('orders', {})).balances.find((each) => each.asset === asset)?.total ?? '0'
  /** The owner of a trigger sees its sale as a task of its own. */
  const saleOf = (who = user, msMax = 10_000) =>
    eventually(
      async () => {
        const { tasks } = await app.main.taskEngine.tasks.list(who.id, {
          skip: 0,
          limit: 20,
          kind: 'spot_trigger',
        })
        return tasks.find(({ completed_at }) => completed_at)
      },
      'the trigger has sold',
      msMax,
    )

  test('markets against USDC are listed by their symbol, with the rules of an order', async () => {
    const { markets, total } = await call('markets', { search_text: 'hyp' })
    assert.equal(total, 1)
    assert.deepEqual(
      ['symbol', 'base', 'quote', 'asset_key', 'size_decimals', 'min_order_usd', 'routable', 'reason'].map(
        (name) => markets[0]![name],
      ),
      ['HYPE', 'HYPE', 'USDC', 'hl:spot:HYPE', 2, '10', true, null],
    )
    const all = await call('markets', {})
    assert.ok(all.markets.every(({ quote }) => quote === 'USDC'))
    assert.ok(all.markets.some(({ symbol, base }) => symbol === 'BTC' && base === 'UBTC'))
  })

  test('a purchase transfers the dollars that it needs, reports them, and adds up', async () => {
    const done = await call('buy', { asset: 'HYPE', size: '2.005' })
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    const { filled_size, fee, fee_token, moved_from_perp_usd, avg_price } = done.result
    assert.deepEqual([filled_size, fee_token], ['2', 'HYPE'])
    assert.ok(
      Number(moved_from_perp_usd) > 80 && Number(moved_from_perp_usd) < 82,
      String(moved_from_perp_usd),
    )
    const truth = await app.venueState(user)
    assert.equal(units(truth.spot[2]!.total), units('2') - units(fee))
    assert.equal(
      units(truth.spot[0]!.total),
      units(moved_from_perp_usd!) - (units(avg_price) * units('2')) / 10n ** 8n,
    )
    const again = await call('buy', { asset: 'hl:spot:hype', notional_usdc: '20' })
    assert.equal(again.outcome, 'executed', JSON.stringify(again))
    assert.ok(Number(again.result.filled_size) * Number(again.result.avg_price) <= 20)
  })

  test('without a size the whole free balance is sold, and the part held by an order is not', async () => {
    await call('buy', { asset: 'HYPE', size: '3' })
    const resting = await call('sell', { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: '45' })
    assert.equal(resting.result.order_status, 'resting', JSON.stringify(resting))
    const sold = await call('sell', { asset: 'HYPE/USDC' })
    assert.deepEqual(
      [sold.outcome, sold.result.filled_size, sold.result.fee_token],
      ['executed', '1.99', 'USDC'],
    )
    const { orders } = await call('orders', {})
    assert.deepEqual(
      orders.map(({ asset, side, task_id }) => [asset, side, task_id]),
      [['HYPE', 'sell', resting.task_id]],
    )
    const gone = await call('cancel', { order_id: resting.result.order_id, asset: 'HYPE' })
    assert.deepEqual([gone.outcome, gone.result.venue_status], ['executed', 'canceled'])
    assert.deepEqual((await call('orders', {})).orders, [])
    assert.equal((await call('sell', { asset: 'HYPE' })).result.filled_size, '1')
    const dust = await held('HYPE')
    assert.ok(units(dust) > 0n && units(dust) < units('0.01'), dust)
    const lack = {
      symbol: 'HYPE',
      token: 'HYPE',
      decimals: dust.split('.')[1]!.length,
      required: '0.01',
      available: dust,
    }
    const says = (what: string) =>
      `${what} needs 0.01 HYPE, but only ${dust} HYPE is available: the smallest lot is 0.01`
    assert.deepEqual(await lackOf(call('sell', { asset: 'HYPE' })), { message: says('The sale'), ...lack })
    const exit = call('tp_sl', { asset: 'HYPE', sl_price: '30' })
    assert.deepEqual(await lackOf(exit), { message: says('The exit'), ...lack })
  })

  test('a purchase with a bracket is sold once by its stop, and the target is cancelled', async () => {
    const bought = await call('buy', { asset: 'HYPE', size: '2', tp_price: '50', sl_price: '35' })
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    const { tp_oids, sl_oids, legs } = bought.result
    assert.deepEqual(
      legs.map(({ role, status }) => [role, status]),
      [
        ['entry', 'filled'],
        ['tp', 'open'],
        ['sl', 'open'],
      ],
    )
    const { orders } = await call('orders', {})
    assert.deepEqual(orders.map(({ order_id }) => order_id).sort(), [...tp_oids, ...sl_oids].sort())
    assert.ok(orders.every(({ is_trigger, task_id }) => is_trigger && task_id === bought.task_id))
    await app.price('@1', 34)
    const sale = await saleOf()
    assert.deepEqual([sale.status, sale.outcome], ['completed', 'executed'], JSON.stringify(sale))
    assert.deepEqual((await call('orders', {})).orders, [])
    const fills = (await app.venueState(user)).fills
    assert.equal(new Set(fills.map(({ oid }) => oid)).size, 2)
    assert.ok(units(await held('HYPE')) < units('0.01'))
    await app.price('@1', 60)
    assert.equal(await typeOf(call('cancel', { order_id: tp_oids[0] })), 'order_not_cancellable')
  })

  test('exits of a resting order wait for it, and are cancelled with it', async () => {
    const resting = await call('buy', {
      asset: 'HYPE',
      size: '2',
      order_type: 'limit',
      limit_price: '38',
      tp_price: '44',
      sl_price: '30',
    })
    assert.equal(resting.result.order_status, 'resting', JSON.stringify(resting))
    // Beyond the target: an armed exit would fire now.
    await app.price('@1', 46)
    const waiting = (await call('orders', {})).orders.filter(({ is_trigger }) => is_trigger)
    assert.deepEqual(
      waiting.map(({ parent_order_id }) => parent_order_id),
      [resting.result.order_id, resting.result.order_id],
    )
    await app.price('@1', 37)
    await eventually(async () => (Number(await held('HYPE')) > 1 ? true : undefined), 'the entry has filled')
    await app.price('@1', 45)
    assert.equal((await saleOf()).outcome, 'executed')

    const other = await app.trader('1000')
    const second = await app.call(
      'spot_venue_buy',
      { asset: 'HYPE', size: '2', order_type: 'limit', limit_price: '38', sl_price: '30' },
      other,
    )
    await app.call('spot_venue_cancel', { oid: second.result.order_id }, other)
    await eventually(async () => {
      const { orders } = await app.call('spot_venue_orders', {}, other)
      return orders.length === 0 ? true : undefined
    }, 'the exit was cancelled with its entry')
  })

  test('exits are set on a holding, listed, cancelled by their id, and hidden from other users', async () => {
    await call('buy', { asset: 'HYPE', size: '2' })
    const set = await call('tp_sl', { asset: 'HYPE', sl_price: '30', tp_price: '60' })
    assert.equal(set.outcome, 'executed', JSON.stringify(set))
    const [target] = set.result.tp_oids
    const other = await app.trader('100')
    assert.equal(await typeOf(call('cancel', { order_id: target }, other)), 'not_found')
    const cancelled = await call('cancel', { order_id: target })
    assert.deepEqual(
      [cancelled.outcome, cancelled.result.venue_status, cancelled.result.order_id],
      ['executed', 'canceled', target],
    )
    assert.deepEqual(
      (await call('orders', {})).orders.map(({ order_id }) => order_id),
      set.result.sl_oids,
    )
    // A later purchase must not be sold by the exit of an earlier holding.
    await call('sell', { asset: 'HYPE' })
    assert.deepEqual((await call('orders', {})).orders, [])
    assert.equal(await typeOf(call('cancel', { order_id: set.result.sl_oids[0] })), 'order_not_cancellable')
  })

  test('an exit sells the free balance and nothing else', async () => {
    await call('buy', { asset: 'HYPE', size: '2' })
    await call('tp_sl', { asset: 'HYPE', sl_price: '30' })
    await call('sell', { asset: 'HYPE', order_type: 'limit', limit_price: '50' })
    await app.price('@1', 29)
    // A balance of 0 counts only 5 s after the stop fired.
    const sale = await saleOf(user, 30_000)
    assert.deepEqual(
      [sale.status, sale.outcome, sale.error?.code],
      ['failed', 'not_executed', 'insufficient_balance'],
    )
  })

  test('a lost reply is looked up: one order, one sale', async () => {
    await app.market.control('POST', '/faults', { endpoint: 'exchange', effect: 'dropReply', count: 2 })
    const bought = await call('buy', { asset: 'HYPE', size: '2', sl_price: '30' })
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    await app.market.control('POST', '/faults', { endpoint: 'exchange', effect: 'dropReply', count: 1 })
    await app.price('@1', 29)
    assert.equal((await saleOf()).outcome, 'executed')
    assert.equal((await app.venueState(user)).orders.length, 2)
  })

  test('a request that cannot succeed is rejected by name, and creates no task', async () => {
    const refused = (name: string, input: object) => typeOf(call(name, { asset: 'HYPE', ...input }))
    const before = (await app.main.taskEngine.tasks.list(user.id, { skip: 0, limit: 1 })).total
    assert.equal(await refused('buy', { asset: 'NOPE', size: '1' }), 'unsupported_asset')
    assert.equal(await refused('buy', {}), 'exactly_one_of')
    assert.equal(await refused('buy', { size: '0.001' }), 'below_minimum')
    assert.equal(await refused('buy', { notional_usdc: '9.9' }), 'below_minimum')
    const dear = await lackOf(call('buy', { asset: 'HYPE', size: '30' }))
    const { required, available, ...token } = dear as Record<string, unknown>
    const message = `The purchase needs ${required} USDC, but only ${available} USDC is available`
    assert.deepEqual(token, { message, symbol: 'USDC', token: 'USDC', decimals: 6 })
    assert.deepEqual([Number(required) > 1_200, available], [true, '1000'])
    assert.equal(await refused('buy', { size: '1', limit_price: '39' }), 'extra_forbidden')
    assert.equal(await refused('buy', { size: '1', order_type: 'limit' }), 'missing')
    assert.equal(
      await refused('buy', { size: '1', order_type: 'limit', limit_price: '39.0001' }),
      'tick_invalid',
    )
    assert.equal(await refused('buy', { size: '1', sl_price: '41' }), 'less_than')
    assert.equal(await refused('buy', { size: '1', tp_price: '39' }), 'greater_than')
    assert.equal(await refused('sell', {}), 'insufficient_balance')
    assert.deepEqual(await lackOf(call('sell', { asset: 'HYPE', size: '1' })), {
      message: 'The sale needs 1 HYPE, but only 0 HYPE is available',
      symbol: 'HYPE',
      token: 'HYPE',
      decimals: 2,
      required: '1',
      available: '0',
    })
    assert.equal(await refused('tp_sl', { sl_price: '30' }), 'insufficient_balance')
    assert.equal(await refused('tp_sl', {}), 'missing')
    assert.equal(await refused('cancel', { order_id: '01a1fb65-890a-7838-8775-55e64e5ea0ad' }), 'not_found')
    assert.equal(await refused('cancel', { order_id: '1' }), 'not_found')
    const stranger = await app.addUser()
    assert.equal(await typeOf(call('buy', { asset: 'HYPE', size: '1' }, stranger)), 'setup_incomplete')
    assert.equal((await app.main.taskEngine.tasks.list(user.id, { skip: 0, limit: 1 })).total, before)
  })
})
