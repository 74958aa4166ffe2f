import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { decimalUnits } from '../harness/conservation.ts'
import { eventually, http } from '../harness/gateway.ts'
import { venueGateway } from '../harness/venue-gateway.ts'
import { createFundedPerson, type Person } from '../journeys/users.ts'

/** Operations on an open position through HTTP alone: exits, cancel all, profit and history. */

type Result = {
  order_id: string
  order_status: string
  tp_oids: string[]
  sl_oids: string[]
  fee: string
  realized_pnl_gross_usd: string
  realized_pnl_net_usd: string
  replaced: { order_id: string; leg: string; cancelled: boolean }[]
  cancelled: number
  not_cancelled: number
  orders: { order_id: string; asset: string; cancelled: boolean; venue_status: string }[]
}
type OrderAnswer = {
  task_id: string
  status: string
  outcome: string | null
  code?: string
  detail?: { type: string; loc: string[] }[]
  error: { code: string; message: string } | null
  result: Result
  fills: { fill_id: string; realized_pnl_gross_usd: string; realized_pnl_net_usd: string }[]
}
type Orders = {
  orders: { order_id: string; asset: string; is_position_tpsl: boolean; size: string }[]
  positions: { asset: string; size: string; tp_oids: string[]; sl_oids: string[] }[]
}
type Fill = {
  fill_id: string
  task_id: string
  leg: string
  asset: string
  size: string
  fee: string
  realized_pnl_gross_usd: string
  realized_pnl_net_usd: string
}
type OrderRecord = { order_id: string; leg: string; status: string; filled_size: string; task_id: string }
type Truth = { accounts: { fills: { tid: number; fee: string; closedPnl: string; oid: number }[] }[] }

const micros = (text: string): bigint => decimalUnits(text, 6)

describe('an open position through HTTP alone', () => {
  let gateway: Awaited<ReturnType<typeof venueGateway>>
  let venue: (typeof gateway)['venue']
  before(async () => {
    gateway = await venueGateway()
    venue = gateway.venue
    await venue('POST', '/settings', { walking: false })
    await venue('POST', '/price', { coin: 'BTC', price: 100_000 })
    await venue('POST', '/price', { coin: 'ETH', price: 3_000 })
    await venue('POST', '/price', { coin: '@1', price: 40 })
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const post = async (who: Person, path: string, body: object) =>
    who.call<OrderAnswer>(`POST /v1/${path}`, { body })
  const done = async (who: Person, path: string, body: object): Promise<OrderAnswer> => {
    const { status, body: reported } = await post(who, `${path}?wait=true`, body)
    assert.deepEqual([status, reported.outcome], [200, 'executed'], `${path}: ${JSON.stringify(reported)}`)
    return reported
  }
  const refused = async (who: Person, path: string, body: object) => {
    const { status, body: reported } = await post(who, path, body)
    return [
      status,
      reported.code === 'validation' ? reported.detail?.[0]?.type : reported.code,
      reported.detail?.[0]?.loc?.at(-1),
    ]
  }
  const orders = async (who: Person) => (await who.call<Orders>('GET /v1/perp/orders')).body
  /** The list of open orders may lag briefly. */
  const protectedBy = (who: Person, tp: string[], sl: string[]) =>
    eventually(async () => {
      const [position] = (await orders(who)).positions
      const shown = JSON.stringify([position?.tp_oids, position?.sl_oids])
      return shown === JSON.stringify([tp, sl]) ? position : undefined
    }, `the position shows ${tp} and ${sl}`)
  const trader = async (amount = '2000'): Promise<Person> => {
    const person = await createFundedPerson(gateway.url)
    await post(person, 'perp/setup?wait=true', {})
    await done(person, 'perp/fund', { amount_usd: amount })
    return person
  }
  const truth = async (who: Person) =>
    (await venue<Truth>('GET', `/effects?user=${who.evm.toLowerCase()}`)).accounts[0]!
  const filled = (who: Person, count: number, section = 'perp') =>
    eventually(
      async () => {
        const { body } = await who.call<{ fills: Fill[] }>(`GET /v1/${section}/fills`)
        return body.fills.length >= count ? body.fills : undefined
      },
      'the record has the fills',
      // The next comparison of the reconciler finds fills that a dropped stream missed.
      90_000,
    )

  test('exits are set on a position, replaced, and follow its whole size', async () => {
    const person = await trader()
    assert.deepEqual(await refused(person, 'perp/tp-sl', { asset: 'BTC', sl_price: 90_000 }), [
      409,
      'no_position',
      undefined,
    ])
    await done(person, 'perp/open', { asset: 'BTC', side: 'long', size: '0.01', leverage: 5 })
    assert.deepEqual(await refused(person, 'perp/tp-sl', { asset: 'BTC' }), [422, 'missing', 'tp_price'])
    const wrongStop = { asset: 'BTC', sl_price: 101_000 }
    assert.deepEqual(await refused(person, 'perp/tp-sl', wrongStop), [422, 'less_than', 'sl_price'])
    const wrongTake = { asset: 'BTC', tp_price: 99_000 }
    assert.deepEqual(await refused(person, 'perp/tp-sl', wrongTake), [422, 'greater_than', 'tp_price'])
    const tooMuch = { asset: 'BTC', sl_price: 90_000, size: '0.02' }
    assert.deepEqual(await refused(person, 'perp/tp-sl', tooMuch), [422, 'less_than_equal', 'size'])

    const first = await done(person, 'perp/tp-sl', { asset: 'BTC', tp_price: 120_000, sl_price: 90_000 })
    assert.deepEqual(first.result.replaced, [])
    await protectedBy(person, first.result.tp_oids, first.result.sl_oids)
    assert.ok((await orders(person)).orders.every((each) => each.is_position_tpsl))

    const second = await done(person, 'perp/tp-sl', { asset: 'BTC', sl_price: 95_000 })
    assert.deepEqual(
      second.result.replaced.map(({ order_id, leg, cancelled }) => [order_id, leg, cancelled]),
      [[first.result.sl_oids[0], 'sl', true]],
    )
    await protectedBy(person, first.result.tp_oids, second.result.sl_oids)

    const beside = { asset: 'BTC', tp_price: 110_000, size: '0.004', replace: false }
    const third = await done(person, 'perp/tp-sl', beside)
    assert.deepEqual(third.result.replaced, [])
    const both = [...first.result.tp_oids, ...third.result.tp_oids].sort()
    await eventually(async () => {
      const [position] = (await orders(person)).positions
      return JSON.stringify(position?.tp_oids.toSorted()) === JSON.stringify(both) ? true : undefined
    }, 'the position shows both targets')

    await done(person, 'perp/open', { asset: 'BTC', side: 'long', size: '0.005', leverage: 5 })
    await venue('POST', '/price', { coin: 'BTC', price: 94_900 })
    await eventually(
      async () => ((await orders(person)).positions.length === 0 ? true : undefined),
      'the stop has closed all of it',
    )
    await venue('POST', '/price', { coin: 'BTC', price: 100_000 })
  })

  test('a new stop is at the venue before the earlier one ends', async () => {
    const person = await trader()
    const bracket = { asset: 'BTC', side: 'long', size: '0.01', leverage: 5, sl_price: 90_000 }
    const opened = await done(person, 'perp/open', bracket)
    const moved = await done(person, 'perp/tp-sl', { asset: 'BTC', sl_price: 92_000 })
    assert.deepEqual(
      moved.result.replaced.map(({ order_id, cancelled }) => [order_id, cancelled]),
      [[opened.result.sl_oids[0], true]],
    )
    type State = { order: { order: { timestamp: number }; statusTimestamp: number; status: string } }
    const { urls } = (await http<{ urls: { hyperliquid: string } }>(gateway.world)).body
    const stateOf = async (oid: string) => {
      const body = { type: 'orderStatus', user: person.evm, oid: Number(oid) }
      return (await http<Partial<State>>(`${urls.hyperliquid}/info`, { method: 'POST', body })).body.order
    }
    const [old, now] = await eventually(async () => {
      const [first, second] = [
        await stateOf(opened.result.sl_oids[0]!),
        await stateOf(moved.result.sl_oids[0]!),
      ]
      return first?.status === 'canceled' && second ? ([first, second] as const) : undefined
    }, 'the venue shows the end of the first stop')
    assert.ok(now.order.timestamp <= old.statusTimestamp, `${now.order.timestamp} ${old.statusTimestamp}`)
  })

  test('every order of a market, then of all markets, is cancelled and named', async () => {
    const person = await trader()
    const rest = (asset: string, size: string, limit_price: number) =>
      done(person, 'perp/open', { asset, size, limit_price, side: 'long', order_type: 'limit', leverage: 5 })
    const btc = await rest('BTC', '0.001', 90_000)
    const eth = await rest('ETH', '0.05', 2_500)
    await done(person, 'perp/open', { asset: 'BTC', side: 'long', size: '0.002', leverage: 5 })
    const exits = await done(person, 'perp/tp-sl', { asset: 'BTC', tp_price: 120_000, sl_price: 95_000 })
    const one = await done(person, 'perp/orders/cancel-all', { asset: 'ETH' })
    assert.deepEqual(
      one.result.orders.map(({ order_id, asset, cancelled }) => [order_id, asset, cancelled]),
      [[eth.result.order_id, 'ETH', true]],
    )
    await person.call('POST /v1/kill', { body: { on: true } })
    const all = await done(person, 'perp/orders/cancel-all', {})
    assert.deepEqual(
      new Set(all.result.orders.map(({ order_id }) => order_id)),
      new Set([btc.result.order_id, ...exits.result.tp_oids, ...exits.result.sl_oids]),
    )
    assert.deepEqual([all.result.cancelled, all.result.not_cancelled], [3, 0])
    const none = await done(person, 'perp/orders/cancel-all', {})
    assert.deepEqual(none.result.orders, [])
    const stop = await done(person, 'perp/tp-sl', { asset: 'BTC', sl_price: 94_000 })
    assert.equal(stop.result.sl_oids.length, 1, 'an exit is accepted under a kill switch')
  })

  test('the realised profit of a close is the same in its result, its fills, events and history', async () => {
    const person = await trader()
    const opened = await done(person, 'perp/open', { asset: 'ETH', side: 'long', size: '0.1', leverage: 5 })
    await venue('POST', '/price', { coin: 'ETH', price: 3_100 })
    const closed = await done(person, 'perp/close', { asset: 'ETH' })
    const { fills } = await truth(person)
    const own = fills.filter(({ oid }) => String(oid) === closed.result.order_id)
    const gross = own.reduce((sum, { closedPnl }) => sum + micros(closedPnl), 0n)
    const fees = own.reduce((sum, { fee }) => sum + micros(fee), 0n)
    assert.ok(gross > 9_000_000n, String(gross))
    assert.equal(micros(closed.result.realized_pnl_gross_usd), gross)
    assert.equal(micros(closed.result.realized_pnl_net_usd), gross - fees)
    assert.equal(closed.fills.length, own.length)
    assert.ok(closed.fills.every((fill) => fill.realized_pnl_net_usd !== undefined))

    const record = await filled(person, fills.length)
    assert.deepEqual(new Set(record.map(({ task_id }) => task_id)), new Set([opened.task_id, closed.task_id]))
    const reported = record.filter(({ task_id }) => task_id === closed.task_id)
    assert.equal(
      reported.reduce((sum, each) => sum + micros(each.realized_pnl_net_usd), 0n),
      gross - fees,
    )
    const events = await person.call<{
      events: { data: { fill_id: string; realized_pnl_gross_usd: string } }[]
    }>('GET /v1/notifications?types=order.filled')
    for (const { fill_id, realized_pnl_gross_usd } of reported) {
      const event = events.body.events.find(({ data }) => data.fill_id === fill_id)
      assert.equal(event?.data.realized_pnl_gross_usd, realized_pnl_gross_usd)
    }
    const history = await eventually(async () => {
      const { body } = await person.call<{ orders: OrderRecord[] }>('GET /v1/perp/orders/history?asset=ETH')
      return body.orders.every(({ status }) => status === 'filled') ? body.orders : undefined
    }, 'the history has both orders as filled')
    assert.deepEqual(
      history.map(({ task_id, filled_size }) => [task_id, filled_size]),
      [
        [closed.task_id, '0.1'],
        [opened.task_id, '0.1'],
      ],
    )
    await venue('POST', '/price', { coin: 'ETH', price: 3_000 })
  })

  test('history is read page by page without a gap or a duplicate', async () => {
    const person = await trader()
    for (let n = 0; n < 3; n += 1) {
      await done(person, 'perp/open', { asset: 'BTC', side: 'long', size: '0.001', leverage: 5 })
      await done(person, 'perp/close', { asset: 'BTC' })
    }
    const count = (await truth(person)).fills.length
    const all = await filled(person, count)
    const walk = async (path: string, key: 'fills' | 'orders') => {
      const seen: string[] = []
      let before: string | null = ''
      while (before !== null) {
        const query: string = before === '' ? '' : `&before=${before}`
        const { status, body } = await person.call<Record<string, unknown>>(`GET ${path}?limit=2${query}`)
        assert.equal(status, 200, JSON.stringify(body))
        const page = body[key] as Record<string, string>[]
        assert.ok(page.length <= 2)
        seen.push(...page.map(({ fill_id, cloid }) => (key === 'fills' ? fill_id! : cloid!)))
        before = body.next_before as string | null
      }
      return seen
    }
    assert.deepEqual(
      await walk('/v1/perp/fills', 'fills'),
      all.map(({ fill_id }) => fill_id),
    )
    const cloids = await walk('/v1/perp/orders/history', 'orders')
    assert.equal(cloids.length, 6)
    assert.equal(new Set(cloids).size, 6)
    assert.equal((await person.call('GET /v1/perp/fills?limit=101')).status, 422)
    assert.equal((await person.call('GET /v1/perp/fills?before=x')).status, 422)
    const other = await trader('100')
    const { body } = await other.call<{ fills: Fill[] }>('GET /v1/perp/fills')
    assert.deepEqual(body.fills, [])
  })

  test('spot orders and triggers of the gateway are cancelled together, and spot has its own history', async () => {
    const person = await trader()
    const bought = await done(person, 'spot_venue/buy', { asset: 'HYPE', notional_usdc: 200 })
    await done(person, 'spot_venue/tp-sl', { asset: 'HYPE', size: '2', tp_price: 60, sl_price: 30 })
    const limit = { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: 50 }
    const sale = await done(person, 'spot_venue/sell', limit)
    const all = await done(person, 'spot_venue/orders/cancel-all', { asset: 'HYPE' })
    assert.deepEqual([all.result.cancelled, all.result.not_cancelled], [3, 0])
    assert.ok(all.result.orders.some(({ order_id }) => order_id === sale.result.order_id))
    await eventually(async () => {
      const { body } = await person.call<Orders>('GET /v1/spot_venue/orders')
      return body.orders.length === 0 ? true : undefined
    }, 'no order is open')
    const fills = await filled(person, 1, 'spot_venue')
    assert.deepEqual(
      [...new Set(fills.map(({ asset, task_id }) => `${asset} ${task_id}`))],
      [`HYPE ${bought.task_id}`],
    )
    const { body } = await person.call<{ orders: OrderRecord[] }>('GET /v1/spot_venue/orders/history')
    assert.deepEqual(
      body.orders.map(({ order_id }) => order_id),
      [sale.result.order_id, bought.result.order_id],
    )
    assert.deepEqual((await person.call<{ fills: Fill[] }>('GET /v1/perp/fills')).body.fills, [])
  })
})
