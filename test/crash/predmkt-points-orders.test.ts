/** kill -9 at the boundaries of orders at the prediction market. */
import assert from 'node:assert/strict'
import { eventually } from '../harness/gateway.ts'
import { buyTerms, cashOf, executed, micros, outcomeOf } from '../journeys/predmkt-calls.ts'
import { afterStep, type Case, killInCases } from './predmkt-points.ts'

const purchase: Case = {
  title: 'purchase',
  shortPoint: 'net:polymarket:after@3',
  needed: [...afterStep, /^db:with prediction_fill:after/],
  async run(points, attempt) {
    const { at } = attempt
    const market = points.nextMarket()
    const [was, orders] = await Promise.all([points.held(outcomeOf(market)), points.ordersOf('BUY')])
    const { result } = await points.request(attempt, '/predmkt/order', buyTerms(market, '2'))
    const is = await points.held(outcomeOf(market))
    assert.equal((await points.ordersOf('BUY')).length, orders.length + 1, `${at}: one order`)
    assert.equal(is.shares - was.shares, micros(result.settled_shares!), at)
    assert.equal(was.pusd - is.pusd, micros(result.total_usd!), at)
    const fills = 'select count(*) from prediction_fill where order_id = $1'
    assert.equal(await points.count(fills, [result.order_id]), 1, at)
  },
}

const sale: Case = {
  title: 'sale',
  shortPoint: 'db:with prediction_fill:after',
  needed: [...afterStep, /^db:with prediction_fill:after/],
  async run(points, attempt) {
    const { at } = attempt
    const market = points.nextMarket()
    await executed(points.person, '/predmkt/order', buyTerms(market, '2'))
    const [was, orders] = await Promise.all([points.held(outcomeOf(market)), points.ordersOf('SELL')])
    const body = { outcome_id: outcomeOf(market), side: 'SELL', order_type: 'FAK', amount_shares: '3' }
    const { result } = await points.request(attempt, '/predmkt/order', body)
    const is = await points.held(outcomeOf(market))
    assert.equal((await points.ordersOf('SELL')).length, orders.length + 1, `${at}: one order`)
    assert.deepEqual([was.shares - is.shares, result.settled_shares], [3_000_000n, '3'], at)
    assert.equal(is.pusd - was.pusd, micros(result.total_usd!), at)
  },
}

const limit: Case = {
  title: 'limit order that rests',
  shortPoint: 'db:commit:after',
  needed: afterStep,
  async run(points, attempt) {
    const { at, person } = attempt
    const market = points.nextMarket()
    const cash = await cashOf(person)
    const body = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.05', size: '10' }
    const { result } = await points.request(attempt, '/predmkt/order', body)
    const live = (await points.ordersOf('BUY')).filter(({ status }) => status === 'LIVE')
    assert.deepEqual(
      live.map(({ id }) => id),
      [result.order_id],
      at,
    )
    assert.equal(await cashOf(person), cash - 500_000n, at)
    await executed(person, '/predmkt/order/cancel', { order_id: result.order_id })
    assert.equal(await cashOf(person), cash, at)
  },
}

const cancel: Case = {
  title: 'cancel',
  shortPoint: 'net:polymarket:after',
  needed: afterStep,
  async run(points, attempt) {
    const { at, person } = attempt
    const market = points.nextMarket()
    const cash = await cashOf(person)
    const bid = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.05', size: '10' }
    const [first, second] = [
      await executed(person, '/predmkt/order', bid),
      await executed(person, '/predmkt/order', bid),
    ]
    const body = { order_id: first.result.order_id }
    const { result } = await points.request(attempt, '/predmkt/order/cancel', body)
    assert.deepEqual(result, { canceled: [first.result.order_id], not_canceled: {} }, at)
    const live = (await points.ordersOf('BUY')).filter(({ status }) => status === 'LIVE')
    assert.deepEqual(
      live.map(({ id }) => id),
      [second.result.order_id],
      `${at}: the other order rests`,
    )
    await eventually(async () => (await cashOf(person)) === cash - 500_000n, `${at}: the cash is free`)
    await executed(person, '/predmkt/order/cancel', { cancel_all: true })
  },
}

killInCases('orders at the prediction market', [purchase, sale, limit, cancel])
