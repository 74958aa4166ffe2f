/** What users of prediction markets complain of, each case on a market of each protocol. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  accept,
  buyTerms,
  cashOf,
  createTrader,
  type Ended,
  executed,
  type Market,
  marketBy,
  micros,
  type Order,
  openOrdersOf,
  outcomeOf,
  positionOf,
  predictionVenue,
  type Quote,
  run,
  sellable,
  statusOf,
  type VenueRecord,
} from './predmkt-calls.ts'
import { createFundedPerson, type Person } from './users.ts'
import { type World, worldOf } from './world.ts'

const price = 0.4
type Activity = { pnl: { realized_usd: string }; trades: { order_id: string; settlement: string }[] }
type Fault = { fault: { type?: string }; struck: number }
type Events = { events: { type: string; data: { order_id?: string } }[] }

describe('the cases of the complaints about prediction markets, on both protocols', () => {
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
      { ownWorld: 'the markets of this one are resolved, and its venue fails' },
    )
    world = await worldOf(gateway.world)
    venue = predictionVenue(gateway.world)
    ada = await newTrader('900')
    wallet = (await statusOf(ada)).safe_address
    markets = [
      await marketAt('ben-summer-wins-the-mayoral-race'),
      await marketAt('beta-is-the-largest-company'),
    ]
    assert.deepEqual(
      markets.map(({ protocol }) => protocol),
      ['v1', 'v2'],
    )
  })
  afterEach(async () => {
    await dial({ preset: 'quiet' })
    await venue('POST', '/mode', { mode: 'open' })
    await venue('DELETE', '/faults')
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const dial = (settings: object) => venue('POST', '/realism', settings)
  const always = (ms: number) => ({ rate: 1, minMs: ms, maxMs: ms })
  /** A user whose set-up is complete and who has cash. */
  const newTrader = (usd: string) => createTrader(gateway, world, usd)
  /** The market, whose price stays where it is put. */
  const marketAt = async (slug: string): Promise<Market> => {
    await venue('POST', '/price', { market: slug, price })
    return marketBy(ada, slug)
  }
  const bid = (market: Market) => ({ outcome_id: outcomeOf(market), side: 'BUY', price: '0.05', size: '10' })
  const ordersOf = async (market: Market, side: string, of = wallet) =>
    (await venue<VenueRecord>('GET', `/effects?wallet=${of}`)).orders.filter(
      (each) => each.side === side && each.conditionId === market.condition_id,
    )
  const sharesOf = async (market: Market, of = wallet): Promise<bigint> => {
    const id = outcomeOf(market)
    const { shares } = await venue<{ shares: Record<string, string> }>(
      'GET',
      `/balances?wallet=${of}&tokens=${id}`,
    )
    return micros(shares[id]!)
  }
  const taskOf = async (person: Person, { task_id: id }: { task_id: string }) =>
    (await person.call<Ended>(`GET /v1/tasks/${id}`)).body
  const endOf = async (person: Person, { task_id: id }: { task_id: string }) =>
    (await person.ended(id)) as unknown as Ended
  /** Requests to a path of the venue are counted from now on. */
  const countCalls = async (endpoint: string, type: string) => {
    await venue('POST', '/faults', { effect: 'latency', latencyMs: 1, endpoint, type })
    return async (): Promise<number> =>
      (await venue<Fault[]>('GET', '/faults')).find(({ fault }) => fault.type === type)?.struck ?? 0
  }
  const waitsFor = (person: Person, task: Ended, text: RegExp) =>
    eventually(async () => {
      const now = await taskOf(person, task)
      assert.ok(now.status === 'pending' || now.status === 'running', JSON.stringify(now))
      return text.test(JSON.stringify(now)) ? now : undefined
    }, `the task waits for ${text}`)
  const stateOf = async (market: Market) => ({
    cash: await cashOf(ada),
    shares: await sharesOf(market),
    position: (await positionOf(ada, outcomeOf(market)))?.size ?? '0',
    realized: (await ada.call<Activity>('GET /predmkt/activity')).body.pnl.realized_usd,
  })

  test('case 1: a match that fails is never money, and its shares cannot be sold meanwhile', async () => {
    for (const market of markets) {
      const was = await stateOf(market)
      const bought = (await ordersOf(market, 'BUY')).length
      await dial({ settleDelay: always(5_000), failRate: 1 })
      const task = await accept(ada, '/predmkt/order', { ...buyTerms(market), take_profit_price: '0.6' })
      await eventually(
        async () => ((await positionOf(ada, outcomeOf(market)))?.unsettled_buy ?? '0') !== '0',
        'the match is seen',
      )
      const tasks = await ada.taskCount()
      const sale = { outcome_id: outcomeOf(market), side: 'SELL', order_type: 'FAK', amount_shares: '8' }
      const { status, body } = await ada.call('POST /predmkt/order', { body: sale })
      assert.deepEqual([status, body.code], [409, 'shares_not_settled'], JSON.stringify(body))
      assert.equal(await ada.taskCount(), tasks)
      const during = await taskOf(ada, task)
      assert.deepEqual([during.status, during.outcome], ['running', null], JSON.stringify(during))
      assert.equal((await positionOf(ada, outcomeOf(market)))?.size, was.position)
      const ended = await endOf(ada, task)
      assert.deepEqual(
        [ended.status, ended.outcome, ended.error?.code],
        ['failed', 'not_executed', 'settlement_failed'],
        JSON.stringify(ended),
      )
      assert.deepEqual(await stateOf(market), was)
      assert.equal((await ordersOf(market, 'BUY')).length, bought + 1, 'it was not bought again')
      assert.deepEqual(await openOrdersOf(ada), [], 'there is nothing to protect')
      await dial({ preset: 'quiet' })
    }
  })

  test('what a sale leaves waits for its settlement, and is no missing position meanwhile', async () => {
    const trader = await newTrader('40')
    const { safe_address: own } = await statusOf(trader)
    for (const market of markets) {
      const { result } = await executed(trader, '/predmkt/order', buyTerms(market, '8'))
      const sale = (units: bigint) => ({
        outcome_id: outcomeOf(market),
        side: 'SELL',
        order_type: 'FAK',
        amount_shares: String(Number(units) / 1e6),
      })
      const rest = micros('5')
      await dial({ confirmDelay: always(5_000) })
      const first = sellable(result.settled_shares!) - rest
      const task = await accept(trader, '/predmkt/order', sale(first))
      const left = micros(result.settled_shares!) - first
      await eventually(async () => (await sharesOf(market, own)) === left || undefined, 'the chain has it')
      const { status, body } = await trader.call('POST /predmkt/order', { body: sale(rest) })
      assert.deepEqual([status, body.code], [409, 'shares_not_settled'], JSON.stringify(body))
      assert.equal((await endOf(trader, task)).outcome, 'executed')
      await dial({ preset: 'quiet' })
      await executed(trader, '/predmkt/order', sale(rest))
    }
  })

  test('case 2: money that the venue has locked for nothing ends the order with both balances', async () => {
    for (const market of markets) {
      await venue('POST', '/account', { wallet, phantomUsd: 100_000 })
      const [orders, cash] = [(await ordersOf(market, 'BUY')).length, await cashOf(ada)]
      const refreshes = await countCalls('clob', '/balance-allowance/update')
      const relayed = await countCalls('relayer', '/submit')
      const ended = await run(ada, '/predmkt/order', buyTerms(market))
      assert.deepEqual(
        [ended.outcome, ended.error?.code],
        ['not_executed', 'venue_balance_lag'],
        JSON.stringify(ended),
      )
      const { details } = ended.error as unknown as { details: Record<string, string> }
      assert.equal(micros(details.chain_balance!), cash, JSON.stringify(ended))
      assert.ok(details.venue_balance !== undefined, JSON.stringify(ended))
      assert.deepEqual(
        [await refreshes(), await relayed()],
        [1, 0],
        'it is asked once, and nothing is approved',
      )
      assert.equal((await ordersOf(market, 'BUY')).length, orders)
      assert.equal(await cashOf(ada), cash)
      await venue('DELETE', '/faults')
      await venue('POST', '/account', { wallet, phantomUsd: 0 })
      await executed(ada, '/predmkt/order', buyTerms(market))
    }
  })

  test('case 3: the set-up is complete only once the chain shows the wallet, and no order is taken before', async () => {
    const person = await createFundedPerson(gateway.url)
    await person.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    await dial({ relayerLag: always(3_000) })
    // The replies to the creation of the wallet and to its first batch are lost.
    await venue('POST', '/faults', { effect: 'dropReply', endpoint: 'relayer', type: '/submit', count: 2 })
    const begun = await accept(person, '/predmkt/setup', {})
    for (const market of markets) {
      const { status, body } = await person.call('POST /predmkt/order', { body: buyTerms(market) })
      assert.deepEqual([status, body.code], [409, 'setup_incomplete'], JSON.stringify(body))
      assert.ok((body.missing as string[]).length > 0, JSON.stringify(body))
    }
    assert.equal((await statusOf(person)).setup_complete, false)
    assert.equal((await taskOf(person, begun)).status, 'running')
    assert.equal((await endOf(person, begun)).outcome, 'executed')
    const { setup_complete: isComplete, protocols } = await statusOf(person)
    assert.deepEqual([isComplete, protocols], [true, { v1: true, v2: true }])
  })

  test('case 4: nothing is signed while the venue contradicts itself, and each kind of market trades in one run', async () => {
    const kinds = await Promise.all(
      [
        'fed-cuts-rates-in-december',
        'ben-summer-wins-the-mayoral-race',
        'new-phone-before-march',
        'beta-is-the-largest-company',
      ].map(marketAt),
    )
    assert.deepEqual(
      kinds.map(({ protocol, neg_risk }) => [protocol, neg_risk]),
      [
        ['v1', false],
        ['v1', true],
        ['v2', false],
        ['v2', true],
      ],
    )
    await dial({ negRiskContradictionRate: 1 })
    const sent = await countCalls('clob', '/order')
    const ends = await Promise.all(markets.map((market) => run(ada, '/predmkt/order', buyTerms(market))))
    for (const { outcome, error } of ends)
      assert.deepEqual([outcome, error?.code], ['not_executed', 'upstream_inconsistent'])
    assert.equal(await sent(), 0)
    await dial({ preset: 'quiet' })
    for (const market of kinds) await executed(ada, '/predmkt/order', buyTerms(market))
  })

  test('case 5: an order follows a tick that changes before its signature, or before it arrives', async () => {
    for (const market of markets) {
      const [orders, shares] = [(await ordersOf(market, 'BUY')).length, await sharesOf(market)]
      const { body: quote } = await ada.call<Quote>('POST /predmkt/quote', {
        body: { outcome_id: outcomeOf(market), side: 'BUY', amount_usd: '4' },
      })
      await venue('POST', '/tick-size', { market: market.slug, tick: 0.001 })
      await venue('POST', '/price', { market: market.slug, price: 0.405 })
      const first = await executed(ada, '/predmkt/order', { ...buyTerms(market), worst_price: '0.5' })
      assert.ok(quote.complete)
      await venue('POST', '/faults', {
        effect: 'latency',
        latencyMs: 3_000,
        endpoint: 'clob',
        type: '/order',
        count: 1,
      })
      const task = await accept(ada, '/predmkt/order', buyTerms(market))
      await eventually(
        async () => (await venue<Fault[]>('GET', '/faults')).some(({ struck }) => struck > 0),
        'the order is on its way',
      )
      await venue('POST', '/tick-size', { market: market.slug, tick: 0.01 })
      const second = await endOf(ada, task)
      assert.deepEqual([second.status, second.outcome], ['completed', 'executed'], JSON.stringify(second))
      assert.equal((await ordersOf(market, 'BUY')).length, orders + 2, 'the first body never rested')
      const settled = [first, second].reduce((sum, { result }) => sum + micros(result.settled_shares!), 0n)
      assert.equal(await sharesOf(market), shares + settled)
      await venue('DELETE', '/faults')
      await venue('POST', '/price', { market: market.slug, price })
    }
  })

  test('case 6: an order whose reply is lost, late or a page of a proxy exists once', async () => {
    for (const fault of [
      { effect: 'dropReply' },
      { effect: 'status', status: 502 },
      // It arrives after the gateway has given it up and sent it again.
      { effect: 'latency', latencyMs: 33_000 },
    ]) {
      const counts = await Promise.all(markets.map((market) => ordersOf(market, 'BUY')))
      await venue('POST', '/faults', { ...fault, endpoint: 'clob', type: '/order', count: 2 })
      const ends = await Promise.all(
        markets.map((market) => executed(ada, '/predmkt/order', buyTerms(market))),
      )
      for (const [index, market] of markets.entries()) {
        const made = (await ordersOf(market, 'BUY')).slice(counts[index]!.length)
        assert.deepEqual(
          made.map(({ id }) => id),
          [ends[index]!.result.order_id],
          JSON.stringify(fault),
        )
      }
      await venue('DELETE', '/faults')
    }
  })

  test('an order whose reply was lost is not made anew when its second sending is refused', async () => {
    for (const market of markets) {
      const orders = (await ordersOf(market, 'BUY')).length
      // The venue shows nobody what it has just taken.
      await dial({ ordersLag: always(20_000), tradesLag: always(20_000) })
      const sent = await countCalls('clob', '/order')
      await venue('POST', '/faults', { effect: 'dropReply', endpoint: 'clob', type: '/order', count: 1 })
      const task = await accept(ada, '/predmkt/order', buyTerms(market))
      await eventually(async () => (await sent()) > 0, 'the order has arrived')
      await dial({ versionMismatchRate: 1 })
      await eventually(async () => (await sent()) > 1, 'its second sending is refused')
      await waitsFor(ada, task, /reconciling/)
      await dial({ preset: 'quiet' })
      const { outcome, result } = await endOf(ada, task)
      const made = (await ordersOf(market, 'BUY')).slice(orders)
      assert.deepEqual([outcome, made.map(({ id }) => id)], ['executed', [result.order_id]])
      await venue('DELETE', '/faults')
    }
  })

  test('a match of a resting order counts, however late the venue lists it', async () => {
    const bob = await newTrader('50')
    for (const market of markets) {
      const shares = await sharesOf(market)
      await dial({ tradesLag: always(8_000) })
      const rest = { outcome_id: outcomeOf(market), side: 'BUY', price: String(price), size: '10' }
      const { result } = await executed(ada, '/predmkt/order', rest)
      const other = { ...buyTerms(market, '8'), outcome_id: outcomeOf(market, 1), worst_price: '0.62' }
      const task = await accept(bob, '/predmkt/order', other)
      await eventually(async () => (await sharesOf(market)) === shares + micros('10'), 'the chain has them')
      await eventually(async () => {
        const { trades } = (await ada.call<Activity>('GET /predmkt/activity')).body
        return trades.some(
          ({ order_id, settlement }) => order_id === result.order_id && settlement === 'confirmed',
        )
      }, 'the record has them')
      assert.equal((await endOf(bob, task)).outcome, 'executed')
      await dial({ preset: 'quiet' })
    }
  })

  test('case 10: orders wait while the engine restarts, and a wiped take-profit is placed anew', async () => {
    const resting = []
    for (const market of markets) {
      const { result } = await executed(ada, '/predmkt/order', bid(market))
      const bought = await executed(ada, '/predmkt/order', { ...buyTerms(market), take_profit_price: '0.9' })
      resting.push({ market, bid: result.order_id!, shares: bought.result.settled_shares! })
    }
    const exits = async () =>
      (await openOrdersOf(ada)).filter(({ leg, status }) => leg === 'tp' && status === 'live')
    const firstExits = await eventually(async () => {
      const found = await exits()
      return found.length === 2 ? found : undefined
    }, 'the take-profits rest')
    await venue('POST', '/restart', { forMs: 6_000, nextMs: 4_000, wipe: true })
    const tasks = await Promise.all(markets.map((market) => accept(ada, '/predmkt/order', bid(market))))
    const cancel = await accept(ada, '/predmkt/order/cancel', { order_id: resting[0]!.bid })
    for (const task of tasks) await waitsFor(ada, task, /venue_restarting/)
    for (const task of tasks) await waitsFor(ada, task, /venue_post_only/)
    assert.ok(['executed', 'partial'].includes((await endOf(ada, cancel)).outcome!))
    const placed: string[] = []
    for (const task of tasks) {
      const ended = await endOf(ada, task)
      assert.deepEqual(
        [ended.outcome, ended.result.order_status],
        ['executed', 'live'],
        JSON.stringify(ended),
      )
      placed.push(ended.result.order_id!)
    }
    const isNew = ({ id }: Order) => firstExits.every((each) => each.id !== id)
    await eventually(
      async () => ((await exits()).filter(isNew).length === 2 ? true : undefined),
      'the take-profits are placed anew',
    )
    for (const { market, shares } of resting) {
      const sales = (await ordersOf(market, 'SELL')).filter(({ status }) => status === 'LIVE')
      assert.deepEqual(
        sales.map(({ size }) => micros(size)),
        [sellable(shares)],
        'one take-profit rests',
      )
      const bids = (await ordersOf(market, 'BUY')).filter(({ status }) => status === 'LIVE')
      assert.equal(bids.length, 1, 'one bid rests')
      assert.ok(placed.includes(bids[0]!.id))
    }
    const { events } = (
      await ada.call<Events>('GET /v1/notifications?types=predmkt.order.cancelled_by_venue&limit=100')
    ).body
    const wiped = events
      .filter(({ type }) => type === 'predmkt.order.cancelled_by_venue')
      .map(({ data }) => data.order_id)
    for (const { id } of firstExits) assert.ok(wiped.includes(id), `${id} is not among ${wiped.join()}`)
    assert.ok(wiped.includes(resting[1]!.bid))
    await executed(ada, '/predmkt/order/cancel', { cancel_all: true })
  })

  test('case 10: a take-profit that was filled in part and then wiped sells only the rest', async () => {
    const bob = await newTrader('50')
    for (const market of markets) {
      const [sales, shares] = [(await ordersOf(market, 'SELL')).length, await sharesOf(market)]
      const bought = await executed(ada, '/predmkt/order', { ...buyTerms(market), take_profit_price: '0.45' })
      const soldUnits = sellable(bought.result.settled_shares!)
      await eventually(
        async () =>
          (await openOrdersOf(ada)).some(({ price, status }) => price === '0.45' && status === 'live'),
        'the take-profit rests',
      )
      await venue('POST', '/price', { market: market.slug, price: 0.5 })
      const part = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.45', size: '5' }
      await executed(bob, '/predmkt/order', part)
      await eventually(
        async () => (await openOrdersOf(ada)).some(({ size_matched: matched }) => matched === '5'),
        'a part was sold',
      )
      await venue('POST', '/restart', { forMs: 500, nextMs: 500, wipe: true })
      await eventually(async () => {
        const made = (await ordersOf(market, 'SELL')).slice(sales)
        return made.reduce((sum, { matched }) => sum + micros(matched), 0n) === soldUnits
      }, 'the rest was sold')
      await eventually(async () => (await openOrdersOf(ada)).length === 0, 'no exit is left')
      const rest = micros(bought.result.settled_shares!) - soldUnits
      await eventually(async () => (await sharesOf(market)) === shares + rest, 'the sales are settled')
      await venue('POST', '/price', { market: market.slug, price })
    }
  })
})
