import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { decimalUnits } from '../harness/conservation.ts'
import { eventually, http } from '../harness/gateway.ts'
import { venueGateway } from '../harness/venue-gateway.ts'
import { createFundedPerson, type Person } from '../journeys/users.ts'

type PlacedOrder = {
  task_id: string
  status: string
  outcome: string | null
  error: { code: string; message: string } | null
  result: Record<string, string> & { sl_oids: string[]; tp_oids: string[] }
  fills: { order_id: string; fee: string }[]
}
type Refusal = {
  code: string
  missing: string[]
  token: string
  detail: { type: string; loc: string[]; ctx: Record<string, unknown> }[]
}
type Orders = {
  orders: { order_id: string }[]
  positions: { asset: string; size: string; leverage: number; sl_oids: string[]; funding_paid_usd: string }[]
  account: { account_value_usd: string; withdrawable_usd: string }
}
type Truth = {
  fees: { perp: string }
  accounts: { fills: { fee: string; closedPnl: string; oid: number }[] }[]
}

const micros = (text: string): bigint => decimalUnits(text, 6)
const sum = (texts: string[]) => texts.reduce((total, each) => total + micros(each), 0n)

describe('perpetuals through HTTP alone', () => {
  let gateway: Awaited<ReturnType<typeof venueGateway>>
  let venue: (typeof gateway)['venue']
  before(async () => {
    gateway = await venueGateway()
    venue = gateway.venue
    await venue('POST', '/settings', { walking: false })
    await venue('POST', '/price', { coin: 'BTC', price: 100_000 })
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const post = async <B = PlacedOrder>(who: Person, path: string, body: object) =>
    who.call<B>(`POST /v1/perp/${path}`, { body })
  const orders = async (who: Person) => (await who.call<Orders>('GET /v1/perp/orders')).body
  /** A view may lag with the reads of the venue: polls until it is current. */
  const shown = (who: Person, isSo: (now: Orders) => boolean, what: string): Promise<Orders> =>
    eventually(async () => {
      const now = await orders(who)
      return isSo(now) ? now : undefined
    }, what)

  test('set-up, funding, a long with its bracket, the stop, and the withdrawal add up to the cent', async () => {
    const person = await createFundedPerson(gateway.url)
    const setup = await post(person, 'setup?wait=true', {})
    assert.deepEqual([setup.status, setup.body.outcome], [200, 'partial'], JSON.stringify(setup.body))
    const missing = await post<Refusal>(person, 'open', { asset: 'BTC', side: 'long', size: '0.01' })
    assert.deepEqual([missing.status, missing.body.missing], [409, ['agent_approved']])

    const funded = await post(person, 'fund?wait=true', { amount_usd: '2000' })
    assert.equal(funded.body.outcome, 'executed', JSON.stringify(funded.body))
    await shown(person, ({ account }) => account.withdrawable_usd === '2000', 'the deposit')

    const opened = await post(person, 'open?wait=true', {
      asset: 'BTC/USDC:USDC',
      side: 'LONG',
      size: '0.02',
      leverage: '2',
      tp_price: 110_000,
      sl_price: '95000',
    })
    assert.equal(opened.body.outcome, 'executed', JSON.stringify(opened.body))
    const { sl_oids } = opened.body.result
    const { positions } = await shown(
      person,
      ({ positions: [held] }) => held?.sl_oids[0] === sl_oids[0],
      'the position with its stop',
    )
    assert.deepEqual(
      positions.map(({ size, leverage }) => [size, leverage]),
      [['0.02', 2]],
    )

    await venue('POST', '/price', { coin: 'BTC', price: 94_900 })
    const flat = await shown(
      person,
      (now) => now.positions.length === 0 && now.orders.length === 0,
      'the stop has closed the position',
    )

    const { accounts } = await venue<Truth>('GET', `/effects?user=${person.evm.toLowerCase()}`)
    const fills = accounts[0]!.fills
    assert.deepEqual(
      [...new Set(fills.map(({ oid }) => String(oid)))],
      [opened.body.result.order_id, opened.body.result.sl_oids[0]],
    )
    const left =
      2_000_000_000n + sum(fills.map(({ closedPnl }) => closedPnl)) - sum(fills.map(({ fee }) => fee))
    assert.equal(micros(flat.account.account_value_usd), left)

    const withdrawn = flat.account.withdrawable_usd
    const home = await post(person, 'withdraw?wait=true', { amount_usd: withdrawn })
    assert.equal(home.body.outcome, 'executed', JSON.stringify(home.body))
    assert.equal(BigInt(home.body.result.amount!), micros(withdrawn) - 1_000_000n)
    const holdings = (
      await person.call<{ holdings: { chain_id: string; symbol: string; amount: string }[] }>(
        'GET /v1/holdings',
      )
    ).body.holdings
    const usdc = holdings.find(({ chain_id, symbol }) => chain_id === '42161' && symbol === 'USDC')
    assert.equal(BigInt(usdc!.amount), 8_000_000_000n + micros(withdrawn) - 1_000_000n)
    await shown(person, ({ account }) => account.account_value_usd === '0', 'the withdrawal')
  })

  test('a request that cannot succeed is rejected with its reason, and creates no task', async () => {
    const person = await createFundedPerson(gateway.url)
    const tasksBefore = await person.taskCount()
    const refused = async (path: string, body: object) => {
      const { status, body: reported } = await post<Refusal>(person, path, body)
      return [
        status,
        reported.code === 'validation' ? reported.detail[0]?.type : reported.code,
        reported.detail[0]?.loc?.at(-1),
      ]
    }
    const open = { asset: 'BTC', side: 'long', size: '0.01' }
    assert.deepEqual((await refused('open', open)).slice(0, 2), [409, 'setup_incomplete'])
    assert.deepEqual((await refused('close', { asset: 'BTC' })).slice(0, 2), [409, 'setup_incomplete'])
    assert.deepEqual(await refused('open', { ...open, asset: 'NOPE' }), [422, 'unsupported_asset', 'asset'])
    assert.deepEqual((await refused('open', { ...open, asset: 'MATIC' })).slice(0, 2), [409, 'market_closed'])
    assert.deepEqual(await refused('open', { ...open, leverage: 41 }), [422, 'less_than_equal', 'leverage'])
    assert.deepEqual(await refused('open', { ...open, is_buy: true }), [422, 'exactly_one_of', 'side'])
    assert.deepEqual(await refused('open', { ...open, sl_prise: '1' }), [422, 'extra_forbidden', 'sl_prise'])
    const limit = { ...open, order_type: 'limit' }
    assert.deepEqual(await refused('open', limit), [422, 'missing', 'limit_price'])
    assert.deepEqual(await refused('open', { ...limit, limit_price: '99999.5' }), [
      422,
      'tick_invalid',
      'limit_price',
    ])
    assert.deepEqual(await refused('fund', { amount_usd: '4.999999' }), [422, 'below_minimum', 'amount_usd'])
    assert.deepEqual((await refused('fund', { amount_usd: '10000.01' })).slice(0, 2), [
      409,
      'insufficient_balance',
    ])
    assert.deepEqual(await refused('fund', { amount_usd: 10, source_chain_id: 99 }), [
      422,
      'unsupported_chain',
      'source_chain_id',
    ])
    assert.deepEqual(await refused('withdraw', { amount_usd: 10, destination_token: 'NOPE' }), [
      422,
      'unsupported_asset',
      'destination_token',
    ])
    assert.deepEqual(await refused('withdraw', { amount_usd: '1.5' }), [422, 'below_minimum', 'amount_usd'])
    assert.deepEqual((await refused('withdraw', { amount_usd: '5' })).slice(0, 2), [
      409,
      'insufficient_balance',
    ])
    assert.equal(await person.taskCount(), tasksBefore)

    await post(person, 'setup?wait=true', {})
    await post(person, 'fund?wait=true', { amount_usd: '100' })
    const before = await person.taskCount()
    assert.deepEqual(await refused('open', { ...open, size: '0.0000001' }), [422, 'below_minimum', 'size'])
    assert.deepEqual(await refused('open', { ...open, size: '0.00009' }), [422, 'below_minimum', 'size'])
    assert.deepEqual((await refused('open', { ...open, size: '0.05' })).slice(0, 2), [
      409,
      'insufficient_balance',
    ])
    const small = { asset: 'BTC', side: 'long', notional_usd: '50' }
    const { mark_price: mark } = (
      await person.call<{ markets: { mark_price: string }[] }>('GET /v1/perp/markets?search_text=btc')
    ).body.markets[0]!
    const beyond = String(Math.round(Number(mark) * 1.1))
    const under = String(Math.round(Number(mark) * 0.9))
    assert.deepEqual(await refused('open', { ...small, sl_price: beyond }), [422, 'less_than', 'sl_price'])
    assert.deepEqual(await refused('open', { ...small, tp_price: under }), [422, 'greater_than', 'tp_price'])
    assert.deepEqual((await refused('close', { asset: 'BTC' })).slice(0, 2), [409, 'no_position'])
    assert.deepEqual((await refused('orders/cancel', { oid: 1 })).slice(0, 2), [404, 'not_found'])
    assert.equal(await person.taskCount(), before)
  })

  test('a kill switch stops opening orders, and allows exits', async () => {
    const person = await createFundedPerson(gateway.url)
    await post(person, 'setup?wait=true', {})
    await post(person, 'fund?wait=true', { amount_usd: '500' })
    const opened = await post(person, 'open?wait=true', { asset: 'BTC', side: 'short', notional_usd: 100 })
    assert.equal(opened.body.outcome, 'executed', JSON.stringify(opened.body))
    await person.call('POST /v1/kill', { body: { on: true } })
    const paused = await post<Refusal>(person, 'open', { asset: 'BTC', side: 'short', notional_usd: 100 })
    assert.deepEqual([paused.status, paused.body.code], [403, 'trading_paused'])
    const closed = await post(person, 'close?wait=true', { asset: 'BTC' })
    assert.equal(closed.body.outcome, 'executed', JSON.stringify(closed.body))
    const home = await post(person, 'withdraw?wait=true', { amount_usd: '10' })
    assert.equal(home.body.outcome, 'executed', JSON.stringify(home.body))
  })

  test('the venue and its balances survive a restart of the world', async () => {
    const person = await createFundedPerson(gateway.url)
    await post(person, 'setup?wait=true', {})
    await post(person, 'fund?wait=true', { amount_usd: '50' })
    await http(`${gateway.world}/chains/hyperliquid/kill`, { method: 'POST', body: {} })
    const dead = await person.call('GET /v1/perp/orders')
    assert.ok(dead.status === 503 || dead.status === 504, String(dead.status))
    await http(`${gateway.world}/chains/hyperliquid/start`, { method: 'POST', body: {} })
    await eventually(async () => {
      const { status, body } = await person.call<Orders>('GET /v1/perp/orders')
      return status === 200 && body.account.account_value_usd === '50' ? body : undefined
    }, 'the venue answers again')
  })
})
