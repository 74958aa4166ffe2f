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
  sellable,
  setUp,
  statusOf,
} from './predmkt-calls.ts'
import { createFundedPerson, type Person } from './users.ts'
import { base, polygon, type World, worldOf } from './world.ts'

describe('a user trades prediction markets by HTTP alone, without a coin for gas', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  /** Buys what take-profits sell. */
  let other: Person
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0' },
      { ownWorld: 'the markets of this one are resolved' },
    )
    world = await worldOf(gateway.world)
    other = await setUpPerson()
    await world.fund(polygon, other.evm, 'USDC', '200')
    await executed(other, '/predmkt/fund-safe', { amount_usd: '200' })
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

  /** The price of purchases, that of the take-profit, and one above. */
  type Prices = readonly [bought: number, sold: number, above: number]
  type Kind = { negRisk: boolean; hasFee?: boolean; prices?: Prices }
  const trade = async (
    slug: string,
    protocol: string,
    { negRisk, hasFee = false, prices = [0.4, 0.5, 0.55] }: Kind,
  ) => {
    const [price, target, above] = prices
    const person = await setUpPerson()
    const status = await statusOf(person)
    assert.deepEqual([status.setup_complete, status.protocols], [true, { v1: true, v2: true }])
    assert.equal(await world.balance(polygon, person.evm), 0n, 'the user has no coin for gas')

    const dollarsOnBase = () => world.balance(base, person.evm, world.manifest.contracts[base]!.usdc)
    const onBase = await dollarsOnBase()
    const funded = await executed(person, '/predmkt/fund-safe', { amount_usd: '60', source_chain_id: base })
    const start = micros(funded.result.amount_usd!)
    assert.equal(await cashOf(person), start)
    assert.equal(
      onBase - (await dollarsOnBase()),
      start + micros(funded.result.fee_usd!),
      'the fees are named',
    )

    await venue('POST', '/price', { market: slug, price })
    const market = await marketBy(person, slug)
    assert.deepEqual([market.protocol, market.neg_risk], [protocol, negRisk])
    const outcomeId = market.outcomes[0]!.outcome_id

    /** Buys at the price of a quote, and returns the quote, which the receipt equals to the unit. */
    const buy = async (usd: string, exits: object = {}): Promise<Quote> => {
      const terms = { outcome_id: outcomeId, side: 'BUY', amount_usd: usd }
      const { body: quote } = await person.call<Quote>('POST /predmkt/quote', { body: terms })
      assert.equal(quote.complete, true, JSON.stringify(quote))
      const more = { order_type: 'FOK', quote_id: quote.quote_id, ...exits }
      const { result } = await executed(person, '/predmkt/order', { ...terms, ...more })
      assert.deepEqual(
        [result.settlement, result.settled_shares, result.total_usd, result.fee_usd],
        ['confirmed', quote.shares, quote.total_usd, quote.fee_usd],
      )
      assert.equal(quote.fee_usd !== '0', hasFee, JSON.stringify(quote))
      return quote
    }
    const quote = await buy('20', { take_profit_price: String(target) })
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
    const isBid = ({ id }: Order) => id === resting.result.order_id
    assert.equal((await openOrdersOf(person)).find(isBid)?.price, '0.05')

    const takeProfit = await eventually(
      async () => (await openOrdersOf(person)).find(({ leg, status }) => leg === 'tp' && status === 'live'),
      'the take-profit rests',
    )
    assert.equal(takeProfit.price, String(target))
    const soldUnits = sellable(quote.shares)
    await venue('POST', '/price', { market: slug, price: above })
    const size = String(Number(soldUnits) / 1e6)
    await executed(other, '/predmkt/order', {
      outcome_id: outcomeId,
      side: 'BUY',
      price: String(target),
      size,
    })
    await eventually(
      async () => ((await openOrdersOf(person)).some(({ leg }) => leg === 'tp') ? undefined : true),
      'the take-profit has sold',
    )
    const dust = micros(quote.shares) - soldUnits
    const afterSale = afterBuy + (soldUnits * micros(String(target))) / 1_000_000n
    await eventually(
      async () => ((await cashOf(person)) === afterSale - micros('0.5') ? true : undefined),
      'every dollar of the sale is accounted for',
    )
    assert.equal(micros((await positionOf(person, outcomeId))?.size ?? '0'), dust)

    await venue('POST', '/price', { market: slug, price })
    const second = await buy('10')
    const cancelled = await executed(person, '/predmkt/order/cancel', { order_id: resting.result.order_id })
    assert.deepEqual(cancelled.result, { canceled: [resting.result.order_id], not_canceled: {} })
    const afterTrades = afterSale - micros(second.total_usd)
    assert.equal(await cashOf(person), afterTrades)

    const early = await person.call('POST /predmkt/redeem', { body: { condition_id: market.condition_id } })
    assert.deepEqual([early.status, early.body.code], [409, 'not_resolved'])
    await venue('POST', '/resolve', { market: slug, outcome: 'yes' })
    await eventually(
      async () => ((await positionOf(person, outcomeId))?.redeemable ? true : undefined),
      'the market is resolved',
    )
    const redeemed = await executed(person, '/predmkt/redeem', { condition_id: market.condition_id })
    const payout = dust + micros(second.shares)
    assert.equal(micros(redeemed.result.payout_usd!), payout)
    assert.equal(await positionOf(person, outcomeId), undefined)
    assert.deepEqual(
      (await atVenue(person)).map(({ symbol }) => symbol),
      ['USDC.e', 'pUSD'],
    )
    const end = await cashOf(person)
    assert.equal(end, afterTrades + payout, 'a share of the outcome that won pays one dollar')

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
    trade('recession-declared-next-year', 'v2', { negRisk: false, prices: [0.12, 0.15, 0.16] }))

  test('on a market with a fee', () =>
    trade('bitcoin-up-or-down-today', 'v1', { negRisk: false, hasFee: true }))

  test('a take-profit rests for settled shares and sells them, and a stop-loss sells when the bid has fallen', async () => {
    const person = await setUpPerson()
    await executed(person, '/predmkt/fund-safe', { amount_usd: '60' })
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
