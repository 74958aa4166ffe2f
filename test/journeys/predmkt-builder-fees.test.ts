/** The fee that the operator takes as the builder of an order: it is part of every figure, and bounds hold with it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  cashOf,
  createTrader,
  executed,
  type Market,
  marketBy,
  micros,
  outcomeOf,
  predictionVenue,
  type Quote,
} from './predmkt-calls.ts'
import type { Person } from './users.ts'
import { type World, worldOf } from './world.ts'

const code = `0x${'7b'.repeat(32)}`
type BoundedQuote = Quote & { max_fee_usd: string }
type Trades = { trades: { fee: string; side: string; size: string; price: string }[] }

describe('orders that name a builder who takes a fee', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let venue: ReturnType<typeof predictionVenue>
  let ada: Person
  let bob: Person
  let markets: Market[]
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0', POLYMARKET_BUILDER_CODE: code },
      { ownWorld: 'the builder of this one takes a fee' },
    )
    world = await worldOf(gateway.world)
    venue = predictionVenue(gateway.world)
    await venue('POST', '/builder-fee', { code, takerBps: 100, makerBps: 50 })
    ada = await createTrader(gateway, world, '300')
    bob = await createTrader(gateway, world, '300')
    markets = []
    for (const slug of ['bitcoin-up-or-down-today', 'beta-is-the-largest-company']) {
      await venue('POST', '/price', { market: slug, price: 0.5 })
      markets.push(await marketBy(ada, slug))
    }
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  test('a purchase costs what its quote says, and no more than its dollars', async () => {
    for (const market of markets) {
      const outcome = { outcome_id: outcomeOf(market), side: 'BUY' }
      const { body: quote } = await ada.call<BoundedQuote>('POST /predmkt/quote', {
        body: { ...outcome, amount_usd: '20' },
      })
      assert.ok(micros(quote.fee_usd) >= 190_000n, `one percent of the dollars: ${JSON.stringify(quote)}`)
      assert.ok(micros(quote.max_fee_usd) >= micros(quote.fee_usd))
      const cash = await cashOf(ada)
      const order = { ...outcome, order_type: 'FOK', amount_usd: '20' }
      const bought = await executed(ada, '/predmkt/order', order)
      assert.deepEqual(
        [bought.result.fee_usd, bought.result.total_usd],
        [quote.fee_usd, quote.total_usd],
        JSON.stringify(bought.result),
      )
      assert.ok(micros(bought.result.total_usd!) <= micros('20'))
      assert.equal(await cashOf(ada), cash - micros(bought.result.total_usd!))
      const refused = await ada.call('POST /predmkt/order', { body: { ...order, max_fee_usd: '0.1' } })
      assert.equal(refused.status, 422, JSON.stringify(refused.body))
      const sold = await executed(ada, '/predmkt/order', {
        outcome_id: outcomeOf(market),
        side: 'SELL',
        order_type: 'FAK',
        amount_shares: '10',
      })
      assert.ok(micros(sold.result.fee_usd!) >= 40_000n, JSON.stringify(sold.result))
      assert.equal(
        await cashOf(ada),
        cash - micros(bought.result.total_usd!) + micros(sold.result.total_usd!),
      )
    }
  })

  test('an order that rests keeps the fee of the maker back, and pays it once it is matched', async () => {
    for (const market of markets) {
      const outcome_id = outcomeOf(market)
      await executed(bob, '/predmkt/order', { outcome_id, side: 'BUY', order_type: 'FOK', amount_usd: '20' })
      await venue('POST', '/price', { market: market.slug, price: 0.8 })
      const cash = await cashOf(ada)
      const bid = { outcome_id, side: 'BUY', price: '0.6', size: '20', post_only: true }
      await executed(ada, '/predmkt/order', bid)
      // Half a percent of 12 dollars.
      assert.equal(await cashOf(ada), cash - micros('12.06'))
      await venue('POST', '/price', { market: market.slug, price: 0.5 })
      await executed(bob, '/predmkt/order', {
        outcome_id,
        side: 'SELL',
        order_type: 'FAK',
        amount_shares: '20',
        worst_price: '0.6',
      })
      await eventually(async () => {
        const { trades } = (await ada.call<Trades>('GET /predmkt/activity')).body
        const own = trades.filter(({ side, price }) => side === 'BUY' && price === '0.6')
        return own.some(({ size, fee }) => size === '20' && micros(fee) === 60_000n) || undefined
      }, 'the bid was matched, with its fee')
      await eventually(
        async () => (await cashOf(ada)) === cash - micros('12.06') || undefined,
        'what was kept back has been paid',
      )
    }
  })
})
