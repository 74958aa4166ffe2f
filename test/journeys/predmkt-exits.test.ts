/** Take-profits and stop-losses while the venue lags, matches in parts and fails trades. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import {
  cashOf,
  type Ended,
  executed,
  micros,
  type Order,
  outcomeOf,
  statusOf,
  type VenueRecord,
} from './predmkt-calls.ts'
import { always, type ExitApp, type InjectedFault, openExitApp, text, whole } from './predmkt-exit-app.ts'

describe('exits of purchases while the venue lags and fails', () => {
  let app: ExitApp
  /** An order that rests from the beginning. */
  let early: string
  before(async () => {
    app = await openExitApp()
    const market = await app.marketAt('cal-autumn-wins-the-mayoral-race')
    const order = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.05', size: '10' }
    early = (await executed(app.ada, '/predmkt/order', order)).result.order_id!
  })
  afterEach(() => app.calm())
  after(() => app?.[Symbol.asyncDispose]())

  test('a stop-loss that the book fills in part sells the rest, too', async () => {
    const { ada, buy, marketAt, noExits, salesOf, venue } = app
    const slug = 'alpha-is-the-largest-company'
    // The market maker bids 0.01 for 400 shares, and nothing below.
    const market = await marketAt(slug, 0.02)
    const bought = await buy(ada, market, { take_profit_price: '0.9', stop_loss_price: '0.01' }, '20')
    assert.ok(bought > micros('500'), text(bought))
    const soldUnits = async () =>
      (await salesOf(ada, market)).reduce((sum, { matched }) => sum + micros(matched), 0n)
    await eventually(async () => ((await soldUnits()) > 0n ? true : undefined), 'a part was sold')
    await eventually(async () => {
      await venue('POST', '/price', { market: slug, price: 0.02 })
      return (await soldUnits()) === whole(bought) ? true : undefined
    }, 'the rest was sold')
    await noExits(ada, market)
  })

  test('exits of a purchase that rested are armed for all of it, where its trades are listed late', async () => {
    const { ada, bob, buy, dial, exitWith, marketAt, noExits, venue } = app
    const slug = 'ben-summer-wins-the-mayoral-race'
    const market = await marketAt(slug)
    const held = await buy(bob, market)
    const outcome_id = outcomeOf(market)
    const bid = { outcome_id, side: 'BUY', price: '0.38', size: '10', take_profit_price: '0.9' }
    const entry = await executed(ada, '/predmkt/order', bid)
    assert.equal(entry.result.order_status, 'live')
    await dial({ tradesLag: always(6_000) })
    await venue('POST', '/price', { market: slug, price: 0.3 })
    assert.ok(held > micros('10'))
    await executed(bob, '/predmkt/order', { outcome_id, side: 'SELL', price: '0.38', size: '10' })
    const exit = await exitWith(ada, market, 'tp', 'live')
    assert.equal((exit as Order & { original_size: string }).original_size, '10')
    await executed(ada, '/predmkt/order/cancel', { condition_id: market.condition_id })
    await noExits(ada, market)
  })

  test('an order that the venue does not list for a while stays open, with the cash that it locks', async () => {
    const { ada, dial, eventsOf, venue } = app
    const cash = await cashOf(ada)
    const wiped = await eventsOf(ada, 'predmkt.order.cancelled_by_venue')
    await dial({ ordersLag: always(600_000) })
    await venue('POST', '/faults', {
      effect: 'latency',
      latencyMs: 1,
      endpoint: 'clob',
      type: '/data/orders',
    })
    await eventually(async () => {
      const [found] = await venue<InjectedFault[]>('GET', '/faults')
      return (found?.struck ?? 0) >= 3 ? true : undefined
    }, 'the venue was asked three times')
    assert.equal(await cashOf(ada), cash)
    await dial({ preset: 'quiet' })
    assert.deepEqual(await eventsOf(ada, 'predmkt.order.cancelled_by_venue'), wiped)
    const cancelled = await executed(ada, '/predmkt/order/cancel', { order_id: early })
    assert.deepEqual(cancelled.result, { canceled: [early], not_canceled: {} })
    assert.equal(await cashOf(ada), cash + micros('0.5'))
  })

  test('a cancel frees nothing that was matched before it, although the match is shown late', async () => {
    const { ada, bob, buy, dial, marketAt, userOf, venue, countOf } = app
    const market = await marketAt('harbor-city-vs-river-town')
    assert.ok((await buy(bob, market)) > micros('6'))
    const cash = await cashOf(ada)
    const outcome_id = outcomeOf(market)
    const bid = { outcome_id, side: 'BUY', price: '0.38', size: '10' }
    const { order_id: id } = (await executed(ada, '/predmkt/order', bid)).result
    assert.equal(await cashOf(ada), cash - micros('3.8'))
    await venue('POST', '/price', { market: market.slug, price: 0.3 })
    await dial({ ordersLag: always(6_000), tradesLag: always(6_000), settleDelay: always(12_000) })
    const sale = { outcome_id, side: 'SELL', price: '0.38', size: '6' }
    const { body: task } = await bob.call<Ended>('POST /predmkt/order', { body: sale })
    const { safe_address: wallet } = await statusOf(ada)
    await eventually(async () => {
      const { orders } = await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)
      return orders.some((each) => each.id === id && each.matched === '6') || undefined
    }, 'a part has matched')
    await executed(ada, '/predmkt/order/cancel', { order_id: id })
    assert.ok((await cashOf(ada)) <= cash - micros('2.28'))
    const ended =
      'select count(*) from prediction_order where user_id = $1 and order_id = $2 and ended_at is not null'
    const user = await userOf(ada)
    await eventually(async () => (await countOf(ended, [user, id])) === 1 || undefined, 'its end is read')
    assert.equal(await cashOf(ada), cash - micros('2.28'))
    await dial({ preset: 'quiet' })
    await bob.ended(task.task_id)
  })

  test('a take-profit whose settlement fails is placed anew, and the stop-loss stays', async () => {
    const { ada, bob, buy, dial, exitWith, marketAt, noExits, salesOf, venue } = app
    const slug = 'beta-is-the-largest-company'
    const market = await marketAt(slug)
    const bought = await buy(ada, market, { take_profit_price: '0.45', stop_loss_price: '0.2' })
    const first = await exitWith(ada, market, 'tp', 'live')
    await venue('POST', '/price', { market: slug, price: 0.5 })
    await dial({ failRate: 1, settleDelay: always(3_000) })
    const taken = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.45', size: text(whole(bought)) }
    const { body: task } = await bob.call<Ended>('POST /predmkt/order', { body: taken })
    await eventually(
      async () =>
        (await salesOf(ada, market)).some(({ status }) => status === 'MATCHED') ? true : undefined,
      'the take-profit has matched',
    )
    await dial({ preset: 'quiet' })
    // The order that is placed again rests.
    await venue('POST', '/price', { market: slug, price: 0.4 })
    const failed = await bob.ended(task.task_id)
    assert.equal(failed.error?.code, 'settlement_failed', JSON.stringify(failed))
    const again = await exitWith(ada, market, 'tp', 'live')
    assert.notEqual(again.id, first.id)
    assert.equal((again as Order & { original_size: string }).original_size, text(whole(bought)))
    await exitWith(ada, market, 'sl', 'watched')
    await executed(ada, '/predmkt/order/cancel', { condition_id: market.condition_id })
    await noExits(ada, market)
  })

  test('exits of a purchase at market price are on the right side of what it pays', async () => {
    const { ada, marketAt } = app
    const order = {
      outcome_id: outcomeOf(await marketAt('new-phone-before-march')),
      side: 'BUY',
      amount_usd: '8',
    }
    for (const order_type of ['FAK', 'FOK'])
      for (const [field, price] of [
        ['take_profit_price', '0.01'],
        ['stop_loss_price', '0.9'],
      ] as const) {
        const body = { ...order, order_type, [field]: price }
        const reply = await ada.call('POST /predmkt/order', { body })
        assert.equal(reply.status, 422, JSON.stringify(reply.body))
        assert.match(JSON.stringify(reply.body), new RegExp(field))
      }
  })

  test('a stop-loss sells while the venue lists no trades of the account', async () => {
    const { ada, buy, exitWith, marketAt, noExits, salesOf, venue } = app
    const slug = 'recession-declared-next-year'
    const market = await marketAt(slug)
    await buy(ada, market, { stop_loss_price: '0.3' })
    await exitWith(ada, market, 'sl', 'watched')
    await venue('POST', '/faults', { effect: 'status', status: 500, endpoint: 'clob', type: '/data/trades' })
    await venue('POST', '/price', { market: slug, price: 0.2 })
    await eventually(async () => (await salesOf(ada, market)).length > 0 || undefined, 'it has sold')
    await venue('DELETE', '/faults')
    await noExits(ada, market)
    assert.equal((await salesOf(ada, market)).length, 1)
  })

  test('a stop-loss whose shares were sold by hand ends, and does not sell what is bought later', async () => {
    const { ada, buy, eventsOf, exitWith, exitsOf, marketAt, noExits, sharesOf, venue } = app
    const slug = 'new-phone-before-march'
    const market = await marketAt(slug)
    const bought = await buy(ada, market, { stop_loss_price: '0.3' })
    await exitWith(ada, market, 'sl', 'watched')
    const byHand = { outcome_id: outcomeOf(market), side: 'SELL', order_type: 'FAK' }
    await executed(ada, '/predmkt/order', { ...byHand, amount_shares: text(whole(bought)) })
    const later = await buy(ada, market)
    await noExits(ada, market)
    const rest = bought - whole(bought)
    assert.equal(await sharesOf(ada, market), later + rest)
    const [ended] = await eventsOf(ada, 'predmkt.exit.cancelled')
    assert.equal(ended?.data.leg, 'sl')
    // Of two purchases with a stop-loss, the earlier one is sold first.
    await buy(ada, market, { stop_loss_price: '0.3' })
    const last = await buy(ada, market, { stop_loss_price: '0.25' })
    const all = await sharesOf(ada, market)
    await executed(ada, '/predmkt/order', { ...byHand, amount_shares: text(whole(all - last)) })
    await eventually(
      async () => ((await exitsOf(ada, market)).length === 1 ? true : undefined),
      'the earlier stop-loss has ended',
    )
    const [left] = await exitsOf(ada, market)
    assert.equal(left?.price, '0.25')
    await venue('POST', '/price', { market: slug, price: 0.2 })
    await noExits(ada, market)
  })

  test('a stop-loss sells only what the take-profit has left, although its fills are listed late', async () => {
    const { ada, bob, buy, dial, exitWith, marketAt, noExits, salesOf, sharesOf, venue } = app
    const slug = 'fed-cuts-rates-in-december'
    const market = await marketAt(slug)
    const bought = await buy(ada, market, { take_profit_price: '0.45', stop_loss_price: '0.3' })
    await exitWith(ada, market, 'tp', 'live')
    const unprotected = await buy(ada, market)
    await dial({ ordersLag: always(8_000), tradesLag: always(8_000) })
    await venue('POST', '/price', { market: slug, price: 0.5 })
    const part = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.45', size: '12' }
    const reply = await bob.call<Ended>('POST /predmkt/order', { body: part })
    assert.ok(reply.status < 300, JSON.stringify(reply.body))
    await eventually(
      async () => ((await salesOf(ada, market)).some(({ matched }) => matched === '12') ? true : undefined),
      'a part of the take-profit was filled',
    )
    await venue('POST', '/price', { market: slug, price: 0.25 })
    const soldUnits = async () =>
      (await salesOf(ada, market)).reduce((sum, { matched }) => sum + micros(matched), 0n)
    await eventually(async () => ((await soldUnits()) >= whole(bought) ? true : undefined), 'it is sold')
    await dial({ preset: 'quiet' })
    await noExits(ada, market)
    assert.equal(await soldUnits(), whole(bought))
    const rest = bought - whole(bought)
    await eventually(
      async () => ((await sharesOf(ada, market)) === unprotected + rest ? true : undefined),
      'the other shares are still there',
    )
  })
})
