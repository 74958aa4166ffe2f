import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { venueGateway } from '../harness/venue-gateway.ts'
import { createFundedPerson, type Person } from '../journeys/users.ts'

type PlacedOrder = {
  task_id: string
  kind: string
  status: string
  outcome: string | null
  error: { code: string; message: string } | null
  result: Record<string, string> & { sl_oids: string[]; tp_oids: string[] }
  fills: { order_id: string; fee: string }[]
}
type Refusal = { code: string; missing: string[]; detail: { type: string; loc: string[] }[] }
type Orders = {
  orders: { order_id: string; task_id: string; is_trigger: boolean }[]
  balances: { asset: string; total: string; hold: string }[]
}
type Fill = { oid: number; px: string; sz: string; fee: string; feeToken: string; side: string }
type Truth = { accounts: { rawUsd: string; spot: Record<string, { total: string }>; fills: Fill[] }[] }

const scale = 10n ** 8n
const units = (text: string): bigint => {
  const [, sign = '', whole = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d*))?$/.exec(text) ?? []
  return BigInt(`${sign}${whole}${fraction.padEnd(8, '0').slice(0, 8)}`)
}
const sum = (values: bigint[]) => values.reduce((total, each) => total + each, 0n)

describe('spot through HTTP alone', () => {
  let gateway: Awaited<ReturnType<typeof venueGateway>>
  let venue: (typeof gateway)['venue']
  before(async () => {
    gateway = await venueGateway()
    venue = gateway.venue
    await venue('POST', '/settings', { walking: false })
    await venue('POST', '/price', { coin: '@1', price: 40 })
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const post = async <B = PlacedOrder>(who: Person, path: string, body: object) =>
    who.call<B>(`POST /v1/spot_venue/${path}`, { body })
  const orders = async (who: Person) => (await who.call<Orders>('GET /v1/spot_venue/orders')).body
  /** A view may lag with the reads of the venue: polls until it is current. */
  const shown = (who: Person, isSo: (now: Orders) => boolean, what: string): Promise<Orders> =>
    eventually(async () => {
      const now = await orders(who)
      return isSo(now) ? now : undefined
    }, what)
  const trader = async (amount: string): Promise<Person> => {
    const person = await createFundedPerson(gateway.url)
    await person.call('POST /v1/perp/setup?wait=true', { body: {} })
    const funded = await person.call<PlacedOrder>('POST /v1/perp/fund?wait=true', {
      body: { amount_usd: amount },
    })
    assert.equal(funded.body.outcome, 'executed', JSON.stringify(funded.body))
    return person
  }
  const saleOf = (who: Person) =>
    eventually(async () => {
      const { body } = await who.call<{ items: PlacedOrder[] }>('GET /v1/tasks?kind=spot_trigger')
      return body.items.find(({ status }) => status === 'completed' || status === 'failed')
    }, 'the trigger has sold')

  test('a purchase, its stop, a sale and a cancel add up to the cent with the venue', async () => {
    const person = await trader('1000')
    const bought = await post(person, 'buy?wait=true', { asset: 'HYPE', notional_usdc: 200, sl_price: 35 })
    assert.deepEqual([bought.status, bought.body.outcome], [200, 'executed'], JSON.stringify(bought.body))
    assert.ok(Number(bought.body.result.moved_from_perp_usd) >= 199)
    const limit = { asset: 'HYPE', size: '1', order_type: 'limit', limit_price: 50 }
    const resting = await post(person, 'sell?wait=true', limit)
    assert.equal(resting.body.result.order_status, 'resting', JSON.stringify(resting.body))
    const cancelled = await post(person, 'orders/cancel?wait=true', { oid: resting.body.result.order_id })
    assert.equal(cancelled.body.result.venue_status, 'canceled', JSON.stringify(cancelled.body))
    const sold = await post(person, 'sell?wait=true', { asset: 'HYPE', size: '1' })
    assert.deepEqual(
      [sold.body.outcome, sold.body.result.filled_size],
      ['executed', '1'],
      JSON.stringify(sold.body),
    )
    await venue('POST', '/price', { coin: '@1', price: 34 })
    const stopped = await saleOf(person)
    assert.equal(stopped.outcome, 'executed', JSON.stringify(stopped))

    const { accounts } = await venue<Truth>('GET', `/effects?user=${person.evm.toLowerCase()}`)
    const [truth] = accounts
    const reported = [bought.body, sold.body, stopped].flatMap(({ result }) => result.order_id)
    assert.deepEqual([...new Set(truth!.fills.map(({ oid }) => String(oid)))].sort(), reported.sort())
    const usd = sum(
      truth!.fills.map(({ px, sz, fee, feeToken, side }) => {
        const value = (units(px) * units(sz)) / scale
        return (side === 'B' ? -value : value) - (feeToken === 'USDC' ? units(fee) : 0n)
      }),
    )
    const base = sum(
      truth!.fills.map(({ sz, fee, feeToken, side }) => {
        const size = side === 'B' ? units(sz) : -units(sz)
        return size - (feeToken === 'HYPE' ? units(fee) : 0n)
      }),
    )
    const heldOf = ({ balances }: Orders, asset: string) =>
      units(balances.find((each) => each.asset === asset)?.total ?? '0')
    await shown(
      person,
      (now) =>
        now.orders.length === 0 &&
        units(truth!.rawUsd) + heldOf(now, 'USDC') === units('1000') + usd &&
        heldOf(now, 'HYPE') === base,
      `nothing open, ${base} of HYPE, and the dollars that are left`,
    )
    assert.ok(base < units('0.01'))
  })

  test('under the kill switch purchases are rejected, and everything can be sold, by hand and by its stop', async () => {
    await venue('POST', '/price', { coin: '@1', price: 40 })
    const person = await trader('500')
    const bought = await post(person, 'buy?wait=true', { asset: 'HYPE', size: 4 })
    assert.equal(bought.body.outcome, 'executed', JSON.stringify(bought.body))
    await person.call('POST /v1/kill', { body: { on: true } })
    const paused = await post<Refusal>(person, 'buy', { asset: 'HYPE', size: 1 })
    assert.deepEqual([paused.status, paused.body.code], [403, 'trading_paused'])
    const exits = { asset: 'HYPE/USDC', size: 2, tp_price: 60, sl_price: 35 }
    const set = await post(person, 'tp-sl?wait=true', exits)
    assert.equal(set.body.outcome, 'executed', JSON.stringify(set.body))
    const other = await createFundedPerson(gateway.url)
    const [target] = set.body.result.tp_oids
    const foreign = await post<Refusal>(other, 'orders/cancel', { order_id: target })
    assert.deepEqual([foreign.status, foreign.body.code], [404, 'not_found'])
    const sold = await post(person, 'sell?wait=true', { asset: 'HYPE', size: 1 })
    assert.equal(sold.body.outcome, 'executed', JSON.stringify(sold.body))
    await venue('POST', '/price', { coin: '@1', price: 34 })
    const stopped = await saleOf(person)
    assert.deepEqual(
      [stopped.outcome, stopped.result.filled_size],
      ['executed', '2'],
      JSON.stringify(stopped),
    )
    await shown(person, (now) => now.orders.length === 0, 'no exit is left')
  })

  test('a cancel of hooks and limit orders leaves the exits of a holding', async () => {
    await venue('POST', '/price', { coin: '@1', price: 40 })
    const person = await trader('300')
    const body = { asset: 'HYPE', size: 2, tp_price: 60, sl_price: 35 }
    const bought = await post(person, 'buy?wait=true', body)
    assert.equal(bought.body.outcome, 'executed', JSON.stringify(bought.body))
    const ids = [...bought.body.result.tp_oids, ...bought.body.result.sl_oids]
    const cancelled = await person.call<object>('DELETE /wallet/outstanding-orders', {
      body: { outstanding_order_ids: ids },
    })
    assert.deepEqual(cancelled.body, { cancelled: [], not_found: ids, not_cancellable: [] })
    await shown(person, (now) => now.orders.length === 2, 'both exits are open')
    await venue('POST', '/price', { coin: '@1', price: 34 })
    assert.equal((await saleOf(person)).outcome, 'executed')
  })
})
