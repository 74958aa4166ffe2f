/** What orders at the prediction market cost at most, and what becomes of them when the venue changes its mind. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import pg from 'pg'
import { deletions } from '#features/predmkt/retention.ts'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  cashOf,
  createTrader,
  type Ended,
  executed,
  type Market,
  marketBy,
  micros,
  openOrdersOf,
  outcomeOf,
  predictionVenue,
  type Quote,
  run,
  setUp,
  statusOf,
  type VenueRecord,
} from './predmkt-calls.ts'
import { createFundedPerson, type Person } from './users.ts'
import { type World, worldOf } from './world.ts'

type CancelLists = { canceled: string[]; not_canceled: Record<string, string> }
type Fault = { fault: { type?: string }; struck: number }

describe('orders at the prediction market', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let venue: ReturnType<typeof predictionVenue>
  let ada: Person
  let wallet: string
  /** A market of each protocol. */
  let markets: Market[]
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0' },
      { ownWorld: 'the venue of this one fails, and changes its fees' },
    )
    world = await worldOf(gateway.world)
    venue = predictionVenue(gateway.world)
    ada = await createTrader(gateway, world, '2000')
    wallet = (await statusOf(ada)).safe_address
    markets = []
    for (const slug of ['bitcoin-up-or-down-today', 'beta-is-the-largest-company']) {
      await venue('POST', '/price', { market: slug, price: 0.5 })
      markets.push(await marketBy(ada, slug))
    }
    assert.deepEqual(
      markets.map(({ protocol }) => protocol),
      ['v1', 'v2'],
    )
  })
  afterEach(async () => {
    await venue('POST', '/realism', { preset: 'quiet' })
    await venue('POST', '/mode', { mode: 'open' })
    await venue('DELETE', '/faults')
    for (const { slug } of markets) {
      await venue('POST', '/price', { market: slug, price: 0.5 })
      await venue('POST', '/fee', { market: slug, rate: 0.04 })
    }
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const purchase = (market: Market, amount = '20') => ({
    outcome_id: outcomeOf(market),
    side: 'BUY',
    order_type: 'FOK',
    amount_usd: amount,
  })
  const accept = async (body: object): Promise<Ended> => {
    const reply = await ada.call<Ended>('POST /predmkt/order', { body })
    assert.ok(reply.status === 200 || reply.status === 202, JSON.stringify(reply.body))
    return reply.body
  }
  const endOf = async ({ task_id: id }: Ended) => (await ada.ended(id)) as unknown as Ended
  const ordersOf = async (market: Market, side = 'BUY') =>
    (await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)).orders.filter(
      (each) => each.side === side && each.conditionId === market.condition_id,
    )
  const struck = async (type: string): Promise<number> =>
    (await venue<Fault[]>('GET', '/faults')).find(({ fault }) => fault.type === type)?.struck ?? 0
  /** Holds the requests to a path back, and changes the venue while the last of them waits. */
  const whileHeld = async (type: string, { count }: { count: number }, change: () => Promise<unknown>) => {
    await eventually(async () => (await struck(type)) >= count || undefined, `${count} requests to ${type}`)
    await change()
  }
  const holdBack = (type: string, count: number) =>
    venue('POST', '/faults', { effect: 'latency', latencyMs: 2_500, endpoint: 'clob', type, count })

  test('a price that falls before the match makes no purchase cost more than its dollars, and its stop-loss is armed', async () => {
    for (const market of markets) {
      await venue('POST', '/fee', { market: market.slug, rate: 0.04 })
      const cash = await cashOf(ada)
      await holdBack('/order', 1)
      const task = await accept({ ...purchase(market, '100'), stop_loss_price: '0.05' })
      await whileHeld('/order', { count: 1 }, () =>
        venue('POST', '/price', { market: market.slug, price: 0.2 }),
      )
      const ended = await endOf(task)
      assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
      const paid = micros(ended.result.total_usd!)
      assert.ok(paid <= micros('100') && paid > micros('98'), ended.result.total_usd)
      assert.equal(await cashOf(ada), cash - paid)
      await eventually(
        async () =>
          (await openOrdersOf(ada)).some(({ leg, status }) => leg === 'sl' && status === 'watched') ||
          undefined,
        'the stop-loss is armed',
      )
      await executed(ada, '/predmkt/order/cancel', { cancel_all: true })
      await venue('DELETE', '/faults')
    }
  })

  test('a fee that rises while the order is on its way is booked as it was taken, and the task ends', async () => {
    for (const market of markets) {
      const cash = await cashOf(ada)
      await holdBack('/order', 1)
      const task = await accept({ ...purchase(market), stop_loss_price: '0.05' })
      await whileHeld('/order', { count: 1 }, () => venue('POST', '/fee', { market: market.slug, rate: 0.2 }))
      const ended = await endOf(task)
      assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
      const paid = micros(ended.result.total_usd!)
      assert.ok(paid > micros('20'), `the venue took more than the dollars: ${ended.result.total_usd}`)
      assert.equal(await cashOf(ada), cash - paid)
      await executed(ada, '/predmkt/order/cancel', { cancel_all: true })
      await venue('DELETE', '/faults')
      await venue('POST', '/fee', { market: market.slug, rate: 0.04 })
      await executed(ada, '/predmkt/order', purchase(market))
    }
  })

  test('the fee of the order book sizes and bounds an order, where the catalogue lists another one', async () => {
    for (const market of markets) {
      await venue('POST', '/fee', { market: market.slug, rate: 0.15 })
      const { body: quote } = await ada.call<Quote & { max_fee_usd: string }>('POST /predmkt/quote', {
        body: { outcome_id: outcomeOf(market), side: 'BUY', amount_usd: '20' },
      })
      const bought = await executed(ada, '/predmkt/order', purchase(market))
      assert.deepEqual(
        [bought.result.fee_usd, bought.result.total_usd],
        [quote.fee_usd, quote.total_usd],
        JSON.stringify(quote),
      )
      assert.ok(micros(bought.result.total_usd!) <= micros('20'))
      const refused = await ada.call('POST /predmkt/order', {
        body: { ...purchase(market), max_fee_usd: quote.fee_usd },
      })
      assert.equal(refused.status, 422, JSON.stringify(refused.body))
      await executed(ada, '/predmkt/order', { ...purchase(market), max_fee_usd: quote.max_fee_usd })
      const limit = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.6', size: '20' }
      const cash = await cashOf(ada)
      const crossed = await executed(ada, '/predmkt/order', limit)
      assert.equal(crossed.result.settled_shares, '20')
      assert.equal(await cashOf(ada), cash - micros(crossed.result.total_usd!))
    }
  })

  test('a quote for shares says what they cost at most, and its order buys them all', async () => {
    for (const market of markets) {
      const { body: quote } = await ada.call<Quote & { max_fee_usd: string }>('POST /predmkt/quote', {
        body: { outcome_id: outcomeOf(market), side: 'BUY', amount_shares: '50' },
      })
      const bought = await executed(ada, '/predmkt/order', {
        outcome_id: outcomeOf(market),
        side: 'BUY',
        order_type: 'FOK',
        quote_id: quote.quote_id,
      })
      assert.ok(micros(bought.result.settled_shares!) >= micros('50'), JSON.stringify(bought.result))
      const most = micros(quote.total_usd) - micros(quote.fee_usd) + micros(quote.max_fee_usd) + 10_000n
      assert.ok(micros(bought.result.total_usd!) <= most, JSON.stringify([quote, bought.result]))
    }
  })

  test('an order whose fee has risen beyond what was accepted is not signed', async () => {
    for (const market of markets) {
      const path = `/clob-markets/${market.condition_id}`
      const limit = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.6', size: '20' }
      for (const more of [{}, { max_fee_usd: '0.3' }]) {
        const orders = (await ordersOf(market)).length
        const cash = await cashOf(ada)
        await holdBack(path, 2)
        const task = accept({ ...limit, ...more })
        await whileHeld(path, { count: 2 }, () => venue('POST', '/fee', { market: market.slug, rate: 0.2 }))
        const ended = await endOf(await task)
        assert.deepEqual(
          [ended.outcome, ended.error?.code],
          ['not_executed', 'fee_changed'],
          JSON.stringify(ended),
        )
        assert.equal((await ordersOf(market)).length, orders)
        assert.equal(await cashOf(ada), cash)
        await venue('DELETE', '/faults')
        await venue('POST', '/fee', { market: market.slug, rate: 0.04 })
      }
    }
  })

  /**
   * Places an order whose first two replies are lost and which the records of the venue show only after a while. The
   * venue changes once it has the order, so that it refuses the same bytes.
   */
  const placeUnanswered = async (market: Market, change: () => Promise<unknown>): Promise<Ended> => {
    const [orders, cash] = [await ordersOf(market), await cashOf(ada)]
    const lag = { rate: 1, minMs: 8_000, maxMs: 8_000 }
    await venue('POST', '/realism', { ordersLag: lag, tradesLag: lag })
    await venue('POST', '/faults', { effect: 'dropReply', endpoint: 'clob', type: '/order', count: 2 })
    const task = await accept(purchase(market))
    const made = async () => (await ordersOf(market)).slice(orders.length)
    await eventually(async () => (await made()).length > 0 || undefined, 'the venue has the order')
    await change()
    const ended = await endOf(task)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    assert.deepEqual(
      (await made()).map(({ id }) => id),
      [ended.result.order_id],
    )
    assert.equal(await cashOf(ada), cash - micros(ended.result.total_usd!))
    await venue('POST', '/realism', { preset: 'quiet' })
    await venue('DELETE', '/faults')
    return ended
  }

  test('a refusal of the same bytes is no proof about the order whose reply was lost', async () => {
    const refusals = [
      {
        begin: () => venue('POST', '/account', { wallet, banned: true }),
        end: () => venue('POST', '/account', { wallet, banned: false }),
      },
      {
        begin: () => venue('POST', '/realism', { versionMismatchRate: 1 }),
        end: () => venue('POST', '/realism', { versionMismatchRate: 0 }),
      },
      {
        begin: () => venue('POST', '/realism', { geoblock: 'blocked' }),
        async end() {
          await venue('POST', '/realism', { geoblock: 'open' })
          // What the venue said of the region counts for a minute.
          await eventually(
            async () => (await statusOf(ada)).trading === 'open' || undefined,
            'the region is open',
            90_000,
          )
        },
      },
    ]
    for (const market of markets)
      for (const { begin, end } of refusals) {
        await placeUnanswered(market, begin)
        await end()
      }
  })

  test('an order is not signed anew for another tick while an earlier send of it may have arrived', async () => {
    for (const market of markets) {
      await venue('POST', '/tick-size', { market: market.slug, tick: 0.001 })
      await venue('POST', '/price', { market: market.slug, price: 0.504 })
      await placeUnanswered(market, () => venue('POST', '/tick-size', { market: market.slug, tick: 0.01 }))
    }
  })

  test('an order that every reply refused ends with the last refusal, without a look for lost ones', async () => {
    for (const market of markets) {
      const orders = (await ordersOf(market)).length
      await venue('POST', '/mode', { mode: 'postOnly', forMs: 3_000 })
      const task = await accept(purchase(market))
      await eventually(
        async () => /venue_post_only/.test(JSON.stringify(await ada.task(task.task_id))) || undefined,
        'the order waits',
      )
      await venue('POST', '/account', { wallet, banned: true })
      const ended = await endOf(task)
      await venue('POST', '/account', { wallet, banned: false })
      assert.deepEqual([ended.outcome, ended.error?.code], ['not_executed', 'banned'], JSON.stringify(ended))
      assert.equal((await ordersOf(market)).length, orders)
    }
  })

  test('headers about the budget that no database takes lose no reply, and the order is sent once', async () => {
    for (const market of markets) {
      await venue('POST', '/realism', { limitHeaders: 'odd' })
      await venue('POST', '/faults', { effect: 'latency', latencyMs: 1, endpoint: 'clob', type: '/order' })
      const orders = (await ordersOf(market)).length
      await executed(ada, '/predmkt/order', purchase(market))
      assert.equal(await struck('/order'), 1)
      assert.equal((await ordersOf(market)).length, orders + 1)
      const rests = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.05', size: '10' }
      const { result } = await executed(ada, '/predmkt/order', rests)
      await executed(ada, '/predmkt/order/cancel', { order_id: result.order_id })
      await venue('DELETE', '/faults')
    }
  })

  test('cancels that have used up their budget hold no order back', async () => {
    for (const market of markets) {
      const rests = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.05', size: '10' }
      const { result } = await executed(ada, '/predmkt/order', rests)
      await venue('POST', '/realism', { cancelsPerSecond: 0.02 })
      const cancel = await ada.call<Ended>('POST /predmkt/order/cancel', {
        body: { order_id: result.order_id },
      })
      await eventually(
        async () =>
          /venue_rate_limited/.test(JSON.stringify(await ada.task(cancel.body.task_id))) || undefined,
        'the cancel waits for its budget',
      )
      await executed(ada, '/predmkt/order', purchase(market))
      await venue('POST', '/realism', { preset: 'quiet' })
      await endOf(cancel.body)
    }
  })

  test('a cancel that has ended an exit says so where the venue then refuses its orders', async () => {
    for (const market of markets) {
      await executed(ada, '/predmkt/order', { ...purchase(market), stop_loss_price: '0.1' })
      const rests = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.05', size: '10' }
      const { result: order } = await executed(ada, '/predmkt/order', rests)
      const [exit] = (await openOrdersOf(ada)).filter(({ leg }) => leg === 'sl')
      await venue('POST', '/faults', {
        effect: 'status',
        status: 400,
        endpoint: 'clob',
        type: '/order',
      })
      const task = await run(ada, '/predmkt/order/cancel', { condition_id: market.condition_id })
      await venue('DELETE', '/faults')
      const { canceled, not_canceled } = task.result as unknown as CancelLists
      assert.deepEqual([task.status, task.outcome], ['failed', 'partial'], JSON.stringify(task))
      assert.deepEqual([canceled, Object.keys(not_canceled)], [[exit!.id], [order.order_id]])
      await executed(ada, '/predmkt/order/cancel', { order_id: order.order_id })
    }
  })

  test('a cancel with the id of an order of somebody else changes nothing of it', async () => {
    const bob = await createFundedPerson(gateway.url)
    await setUp(bob)
    const database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    for (const market of markets) {
      const rests = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.05', size: '10' }
      const { result } = await executed(ada, '/predmkt/order', rests)
      const task = await run(bob, '/predmkt/order/cancel', { order_ids: [result.order_id] })
      assert.equal(task.outcome, 'partial', JSON.stringify(task))
      const { rows } = await database.query('select * from prediction_order where order_id = $1', [
        result.order_id,
      ])
      assert.deepEqual([rows[0].cancel_asked, rows[0].ended_at], [false, null])
      await executed(ada, '/predmkt/order/cancel', { order_id: result.order_id })
    }
    await database.end()
  })

  const bidFor = (market: Market, size = '10') => ({
    outcome_id: outcomeOf(market),
    side: 'BUY',
    price: '0.05',
    size,
  })

  test('a cancel of everything, or of a market, reaches an order that waits to be signed, and none that came later', async () => {
    const [first, second] = markets as [Market, Market]
    for (const scope of [{ cancel_all: true }, { condition_id: first.condition_id }]) {
      await venue('POST', '/faults', { effect: 'status', status: 500, endpoint: 'clob', type: '/tick-size' })
      const waits = await Promise.all([first, second].map((market) => accept(bidFor(market))))
      for (const { task_id: id } of waits)
        await eventually(
          async () => (await ada.task(id)).state === 'waiting' || undefined,
          'the order waits to be signed',
        )
      await executed(ada, '/predmkt/order/cancel', scope)
      const later = await accept(bidFor(first, '11'))
      await venue('DELETE', '/faults')
      const ends = await Promise.all([...waits, later].map(endOf))
      assert.deepEqual(
        ends.map(({ outcome, error }) => [outcome, error?.code]),
        [
          ['not_executed', 'cancelled'],
          'cancel_all' in scope ? ['not_executed', 'cancelled'] : ['executed', undefined],
          ['executed', undefined],
        ],
        JSON.stringify(ends),
      )
      await executed(ada, '/predmkt/order/cancel', { cancel_all: true })
    }
  })

  test('a cancel that meets an order on its way is repeated until the order has ended', async () => {
    const lag = { rate: 1, minMs: 3_000, maxMs: 3_000 }
    const refusal = { effect: 'status', status: 503, endpoint: 'clob', type: '/order', count: 2 }
    for (const market of markets)
      for (const fail of [
        () => venue('POST', '/faults', refusal),
        () => venue('POST', '/realism', { ordersLag: lag }),
      ]) {
        await venue('POST', '/faults', {
          effect: 'latency',
          latencyMs: 4_000,
          endpoint: 'clob',
          type: '/order',
          count: 1,
        })
        const task = await accept(bidFor(market, '12'))
        await eventually(async () => (await struck('/order')) > 0 || undefined, 'the order is on its way')
        await executed(ada, '/predmkt/order/cancel', { condition_id: market.condition_id })
        await fail()
        const ended = await endOf(task)
        assert.deepEqual(
          [ended.outcome, ended.error?.code],
          ['not_executed', 'cancelled'],
          JSON.stringify(ended),
        )
        await venue('POST', '/realism', { preset: 'quiet' })
        await venue('DELETE', '/faults')
      }
    for (const market of markets)
      assert.ok((await ordersOf(market)).every(({ size, status }) => size !== '12' || status === 'CANCELED'))
  })

  test('the retention of rate budgets keeps the fresh one of the other kind', async () => {
    const database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    await database.query(
      `insert into prediction_rate_budget (venue, signer, kind, remaining, updated_at)
       values ('retention', '0x1', 'order', 1, now() - interval '2 days'), ('retention', '0x1', 'cancel', 1, now())`,
    )
    const { text } = deletions.find(({ name }) => name === 'retention of prediction rate budgets')!
    await database.query(text, [new Date(Date.now() - 86_400_000), 1_000])
    const { rows } = await database.query(`select kind from prediction_rate_budget where venue = 'retention'`)
    assert.deepEqual(rows, [{ kind: 'cancel' }])
    await database.query(`delete from prediction_rate_budget where venue = 'retention'`)
    await database.end()
  })
})
