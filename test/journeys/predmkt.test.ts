import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  atVenue,
  cashOf,
  executed,
  marketBy,
  micros,
  type Order,
  openOrdersOf,
  positionOf,
  predictionVenue,
  type Quote,
  setUp,
  statusOf,
} from './predmkt-calls.ts'
import { createFundedPerson } from './users.ts'
import { base, polygon, type World, worldOf } from './world.ts'

describe('a user trades prediction markets by HTTP alone, without a coin for gas', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', SPONSOR_USER_DAY: '1' },
      { ownWorld: 'the markets of this one are resolved' },
    )
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const venue = <B = object>(method: string, path: string, body?: object): Promise<B> =>
    predictionVenue(gateway.world)<B>(method, path, body)
  const setUpPerson = async () => {
    const person = await createFundedPerson(gateway.url)
    const early = await person.call('POST /predmkt/setup', { body: {} })
    assert.deepEqual([early.status, early.body.code], [409, 'disclaimer_required'])
    assert.match(String(early.body.disclaimer), /can become worthless/)
    await setUp(person)
    return person
  }

  const trade = async (slug: string, protocol: string, { negRisk }: { negRisk: boolean }) => {
    const person = await setUpPerson()
    const status = await statusOf(person)
    assert.deepEqual([status.setup_complete, status.protocols], [true, { v1: true, v2: true }])
    assert.equal(await world.balance(polygon, person.evm), 0n, 'the user has no coin for gas')

    const funded = await executed(person, '/predmkt/fund-safe', { amount_usd: '60', source_chain_id: base })
    const start = micros(funded.result.amount_usd!)
    assert.equal(await cashOf(person), start)

    await venue('POST', '/price', { market: slug, price: 0.4 })
    const market = await marketBy(person, slug)
    assert.deepEqual([market.protocol, market.neg_risk], [protocol, negRisk])
    const outcomeId = market.outcomes[0]!.outcome_id

    const quote = (
      await person.call<Quote>('POST /predmkt/quote', {
        body: { outcome_id: outcomeId, side: 'BUY', amount_usd: '20' },
      })
    ).body
    assert.equal(quote.complete, true, JSON.stringify(quote))
    const bought = await executed(person, '/predmkt/order', {
      outcome_id: outcomeId,
      side: 'BUY',
      order_type: 'FOK',
      amount_usd: '20',
      quote_id: quote.quote_id,
    })
    assert.equal(bought.result.settlement, 'confirmed')
    assert.equal(bought.result.settled_shares, quote.shares)
    assert.equal(bought.result.total_usd, quote.total_usd)
    const afterBuy = await cashOf(person)
    assert.equal(afterBuy, start - micros(quote.total_usd), 'every dollar of the purchase is accounted for')
    const position = (await positionOf(person, outcomeId))!
    assert.equal(position.size, quote.shares)
    await venue('POST', '/credit', { wallet: status.safe_address, amount: '3', token: 'usdce' })
    const held = await atVenue(person)
    assert.deepEqual(
      held.map(({ kind, symbol, balance, cost_basis_usd: cost }) => [kind, symbol, micros(balance), cost]),
      [
        ['token', 'USDC.e', micros('3'), null],
        ['token', 'pUSD', afterBuy, null],
        ['outcome_token', market.outcomes[0]!.outcome, micros(quote.shares), position.cost_usd],
      ],
    )
    assert.ok(held.every(({ value_usd }) => value_usd !== null))

    const resting = await executed(person, '/predmkt/order', {
      outcome_id: outcomeId,
      side: 'BUY',
      price: '0.05',
      size: '10',
    })
    assert.equal(resting.result.order_status, 'live')
    assert.equal(await cashOf(person), afterBuy - micros('0.5'))
    const open = (await person.call<{ orders: Order[] }>('GET /predmkt/orders/open')).body.orders
    assert.deepEqual(
      open.map(({ id, price }) => [id, price]),
      [[resting.result.order_id, '0.05']],
    )
    const cancelled = await executed(person, '/predmkt/order/cancel', { order_id: open[0]!.id })
    assert.deepEqual(cancelled.result, { canceled: [open[0]!.id], not_canceled: {} })
    assert.equal(await cashOf(person), afterBuy)

    const early = await person.call('POST /predmkt/redeem', { body: { condition_id: market.condition_id } })
    assert.deepEqual([early.status, early.body.code], [409, 'not_resolved'])
    await venue('POST', '/resolve', { market: slug, outcome: 'yes' })
    await eventually(
      async () => ((await positionOf(person, outcomeId))?.redeemable ? true : undefined),
      'the market is resolved',
    )
    const redeemed = await executed(person, '/predmkt/redeem', { condition_id: market.condition_id })
    assert.equal(redeemed.result.payout_usd, quote.shares)
    assert.equal(await positionOf(person, outcomeId), undefined)
    assert.deepEqual(
      (await atVenue(person)).map(({ symbol }) => symbol),
      ['USDC.e', 'pUSD'],
    )
    const end = await cashOf(person)
    assert.equal(end, afterBuy + micros(quote.shares), 'a share of the outcome that won pays one dollar')

    const usdc = world.manifest.contracts[polygon]!.usdc
    const before = await world.balance(polygon, person.evm, usdc)
    const withdrawn = await executed(person, '/predmkt/withdraw', { amount_usdc: String(Number(end) / 1e6) })
    assert.equal(micros(withdrawn.result.amount_usd!), end)
    assert.equal((await world.balance(polygon, person.evm, usdc)) - before, end)
    assert.equal(await cashOf(person), 0n)

    const { body: activity } = await person.call<{
      trades: { settlement: string }[]
      items: { type: string }[]
      pnl: { realized_usd: string }
    }>('GET /predmkt/activity')
    assert.deepEqual(
      activity.trades.map(({ settlement }) => settlement).filter((each) => each !== 'confirmed'),
      [],
    )
    assert.deepEqual(activity.items.map(({ type }) => type).sort(), ['deposit', 'redeem', 'withdrawal'])
    assert.equal(micros(activity.pnl.realized_usd), end - start)
  }

  test('on a negative-risk market of the first protocol', () =>
    trade('ada-winter-wins-the-mayoral-race', 'v1', { negRisk: true }))

  test('on a market of the second protocol', () =>
    trade('recession-declared-next-year', 'v2', { negRisk: false }))

  test('a take-profit rests for settled shares and sells them, and a stop-loss sells when the bid has fallen', async () => {
    const [person, other] = await Promise.all([setUpPerson(), setUpPerson()])
    await executed(person, '/predmkt/fund-safe', { amount_usd: '60' })
    await executed(other, '/predmkt/fund-safe', { amount_usd: '60' })
    const slug = 'beta-is-the-largest-company'
    await venue('POST', '/price', { market: slug, price: 0.4 })
    const market = await marketBy(person, slug)
    const outcomeId = market.outcomes[0]!.outcome_id
    const buy = (exits: object) =>
      executed(person, '/predmkt/order', {
        outcome_id: outcomeId,
        side: 'BUY',
        order_type: 'FOK',
        amount_usd: '10',
        ...exits,
      })
    const open = () => openOrdersOf(person)
    const sold = async () => ((await positionOf(person, outcomeId)) === undefined ? true : undefined)

    await buy({ take_profit_price: '0.45', stop_loss_price: '0.2' })
    await eventually(
      async () => (await open()).find(({ leg, status }) => leg === 'tp' && status === 'live'),
      'the take-profit rests',
    )
    const during = await person.call('POST /predmkt/order', {
      body: { outcome_id: outcomeId, side: 'SELL', order_type: 'FAK', amount_shares: '5' },
    })
    assert.deepEqual(
      [during.status, during.body.code],
      [409, 'no_position'],
      'the take-profit has the shares',
    )
    await venue('POST', '/price', { market: slug, price: 0.5 })
    await executed(other, '/predmkt/order', {
      outcome_id: outcomeId,
      side: 'BUY',
      price: '0.45',
      size: '30',
    })
    await eventually(sold, 'the take-profit has sold')
    await eventually(async () => ((await open()).length === 0 ? true : undefined), 'the stop-loss has ended')
    await executed(other, '/predmkt/order/cancel', { condition_id: market.condition_id })

    await venue('POST', '/price', { market: slug, price: 0.4 })
    await buy({ take_profit_percentage: '50', stop_loss_price: '0.3' })
    await eventually(
      async () =>
        (await open()).filter(({ status }) => status === 'live' || status === 'watched').length === 2
          ? true
          : undefined,
      'both exits are armed',
    )
    await venue('POST', '/price', { market: slug, price: 0.25 })
    await eventually(sold, 'the stop-loss has sold')
    await eventually(
      async () => ((await open()).length === 0 ? true : undefined),
      'the take-profit has ended',
    )
  })
})
