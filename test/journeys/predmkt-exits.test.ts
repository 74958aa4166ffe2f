/** Exits of purchases at the prediction market on bad days: each share is sold once, or the user is told. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { OrderSide, type SecureClient } from '@polymarket/client'
import pg from 'pg'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { otherClientOf } from '../harness/prediction-clients.ts'
import {
  executed,
  type Market,
  marketBy,
  micros,
  moveOutcomeShares,
  openOrdersOf,
  predictionVenue,
  sellable,
  setUp,
  statusOf,
  type VenueRecord,
} from './predmkt-calls.ts'
import { createFundedPerson, type Person } from './users.ts'
import { polygon, type World, worldOf } from './world.ts'

const price = 0.4
type Exit = { leg: 'tp' | 'sl'; state: string; error: string | null }
type Events = { events: { type: string; data: { order_id: string; leg: string; reason: string } }[] }

describe('exits of purchases at the prediction market', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let database: pg.Pool
  let world: World
  let venue: ReturnType<typeof predictionVenue>
  let ada: Person
  let bob: Person
  let wallet: string
  let markets: Market[]
  let other: SecureClient
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0' },
      { ownWorld: 'its prices are set, and its settlements fail' },
    )
    world = await worldOf(gateway.world)
    venue = predictionVenue(gateway.world)
    database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    ada = await newTrader('900')
    bob = await newTrader('100')
    wallet = (await statusOf(ada)).safe_address
    markets = await Promise.all(
      ['ben-summer-wins-the-mayoral-race', 'beta-is-the-largest-company'].map(async (slug) => {
        await setPrice({ slug }, price)
        return marketBy(ada, slug)
      }),
    )
    other = await otherClientOf({ control: gateway.world, database }, ada)
  })
  afterEach(async () => {
    await venue('POST', '/realism', { preset: 'quiet' })
    await venue('DELETE', '/faults')
    for (const market of markets) await setPrice(market, price)
  })
  after(async () => {
    await database?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  const newTrader = async (usd: string): Promise<Person> => {
    const person = await createFundedPerson(gateway.url)
    await setUp(person)
    await world.fund(polygon, person.evm, 'USDC', usd)
    await executed(person, '/predmkt/fund-safe', { amount_usd: usd })
    return person
  }
  const setPrice = ({ slug }: { slug: string }, to: number) =>
    venue('POST', '/price', { market: slug, price: to })
  const outcomeOf = ({ outcomes }: Market) => outcomes[0]!.outcome_id
  const sharesOf = async (market: Market): Promise<bigint> => {
    const id = outcomeOf(market)
    const { shares } = await venue<{ shares: Record<string, string> }>(
      'GET',
      `/balances?wallet=${wallet}&tokens=${id}`,
    )
    return micros(shares[id]!)
  }
  const salesOf = async () =>
    (await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)).orders.filter(
      ({ side }) => side === 'SELL',
    )
  const buy = async (market: Market, amount: string, exits: object) => {
    const [shares, sales] = [await sharesOf(market), (await salesOf()).length]
    const terms = { outcome_id: outcomeOf(market), side: 'BUY', order_type: 'FOK', amount_usd: amount }
    const { result } = await executed(ada, '/predmkt/order', { ...terms, ...exits })
    const boughtUnits = micros(result.settled_shares!)
    return {
      orderId: result.order_id!,
      soldUnits: sellable(result.settled_shares!),
      restUnits: shares + boughtUnits - sellable(result.settled_shares!),
      sales: async () => (await salesOf()).slice(sales),
    }
  }
  const exitsIn = (orderId: string, states: Partial<Record<Exit['leg'], string>>, msMax?: number) =>
    eventually(
      async () => {
        const { rows } = await database.query<Exit>(
          'select leg, state, error from prediction_exit where entry_order_id = $1',
          [orderId],
        )
        return Object.entries(states).every(([leg, state]) =>
          rows.some((row) => row.leg === leg && row.state === state),
        )
          ? rows
          : undefined
      },
      `the exits are ${JSON.stringify(states)}`,
      msMax,
    )
  const cancelledExits = async (orderId: string) =>
    (await ada.call<Events>('GET /v1/notifications?types=predmkt.exit.cancelled&limit=100')).body.events
      .filter(({ data }) => data.order_id === orderId)
      .map(({ data }) => data.leg)
      .sort()
  const matchedOf = (orders: Awaited<ReturnType<typeof salesOf>>): bigint =>
    orders.reduce((sum, { matched }) => sum + micros(matched), 0n)
  const isAtRest = async () => {
    const sql = `select count(*) as due from prediction_account where sync_at is not null and lower(owner_address) = lower($1)`
    return (await database.query<{ due: string }>(sql, [ada.evm])).rows[0]!.due === '0'
  }

  test('an exit whose shares were sold or moved elsewhere ends, says so, and is compared no more', async () => {
    for (const market of markets) {
      const watched = await buy(market, '4', { stop_loss_price: '0.2' })
      await exitsIn(watched.orderId, { sl: 'watched' })
      const units = watched.soldUnits
      if (market.protocol === 'v1') {
        const shares = Number(units) / 1_000_000
        const sold = await other.placeMarketOrder({
          tokenId: outcomeOf(market),
          shares,
          side: OrderSide.SELL,
        })
        assert.ok(sold.ok)
      } else {
        const to = (await statusOf(bob)).safe_address
        await moveOutcomeShares(world, { from: wallet, to, market, outcomeId: outcomeOf(market), units })
      }
      await exitsIn(watched.orderId, { sl: 'cancelled' }, 60_000)
      assert.deepEqual(await cancelledExits(watched.orderId), ['sl'])
      assert.deepEqual(await openOrdersOf(ada), [])
      await eventually(isAtRest, 'the account is at rest')
    }
    const [market] = markets
    const rests = await buy(market!, '4', { take_profit_price: '0.9', stop_loss_price: '0.2' })
    await exitsIn(rests.orderId, { tp: 'resting', sl: 'watched' })
    const to = (await statusOf(bob)).safe_address
    const move = { from: wallet, to, market: market!, outcomeId: outcomeOf(market!) }
    await moveOutcomeShares(world, { ...move, units: await sharesOf(market!) })
    await exitsIn(rests.orderId, { tp: 'cancelled', sl: 'cancelled' }, 120_000)
    assert.deepEqual(await cancelledExits(rests.orderId), ['sl', 'tp'])
    assert.deepEqual(
      (await rests.sales()).map(({ status }) => status),
      ['CANCELED'],
    )
    await eventually(isAtRest, 'the account is at rest')
  })

  test('a stop-loss that sells a part in a thin book goes on with the rest', async () => {
    const [market] = markets
    const bought = await buy(market!, '200', { stop_loss_price: '0.2' })
    await exitsIn(bought.orderId, { sl: 'watched' })
    await setPrice(market!, 0.02)
    await exitsIn(bought.orderId, { sl: 'filled' }, 90_000)
    const sales = await bought.sales()
    assert.ok(sales.length > 1, 'the book took no more than a part at once')
    assert.equal(matchedOf(sales), bought.soldUnits)
    assert.equal(await sharesOf(market!), bought.restUnits)
  })

  test('a take-profit whose sale fails on the chain protects the shares again', async () => {
    for (const market of markets) {
      const bought = await buy(market, '4', { take_profit_price: '0.45', stop_loss_price: '0.1' })
      await exitsIn(bought.orderId, { tp: 'resting', sl: 'watched' })
      await setPrice(market, 0.5)
      const slow = { rate: 1, minMs: 1_500, maxMs: 1_500 }
      await venue('POST', '/realism', { failRate: 1, settleDelay: slow })
      const size = String(Number(bought.soldUnits) / 1_000_000)
      const bid = { outcome_id: outcomeOf(market), side: 'BUY', price: '0.45', size }
      const task = await bob.call<{ task_id: string }>('POST /predmkt/order', { body: bid })
      assert.equal((await bob.ended(task.body.task_id)).outcome, 'not_executed')
      await venue('POST', '/realism', { preset: 'quiet' })
      await setPrice(market, price)
      await eventually(async () => {
        const live = (await bought.sales()).filter(({ status }) => status === 'LIVE')
        return live.length === 1 && micros(live[0]!.size) === bought.soldUnits
      }, 'the take-profit rests again')
      await exitsIn(bought.orderId, { tp: 'resting', sl: 'watched' })
      await setPrice(market, 0.5)
      await executed(bob, '/predmkt/order', bid)
      await exitsIn(bought.orderId, { tp: 'filled', sl: 'cancelled' })
      assert.equal(await sharesOf(market), bought.restUnits)
    }
  })

  test('a stop-loss does not sell again what the take-profit sells while it is cancelled', async () => {
    const [market] = markets
    const bought = await buy(market!, '4', { take_profit_price: '0.45', stop_loss_price: '0.2' })
    await exitsIn(bought.orderId, { tp: 'resting', sl: 'watched' })
    const kept = await buy(market!, '4', {})
    const latency = { effect: 'latency', latencyMs: 6_000, endpoint: 'clob', type: '/order', count: 1 }
    await venue('POST', '/faults', latency)
    await setPrice(market!, 0.15)
    const isStruck = async () =>
      (await venue<{ struck: number }[]>('GET', '/faults')).some(({ struck }) => struck > 0)
    await eventually(isStruck, 'the cancel is on its way')
    await setPrice(market!, 0.5)
    await executed(bob, '/predmkt/order', {
      outcome_id: outcomeOf(market!),
      side: 'BUY',
      price: '0.45',
      size: '5',
    })
    await exitsIn(bought.orderId, { sl: 'filled' })
    const sales = await bought.sales()
    assert.deepEqual(
      sales.map(({ matched }) => micros(matched)),
      [5_000_000n, bought.soldUnits - 5_000_000n],
    )
    assert.equal(await sharesOf(market!), kept.restUnits + kept.soldUnits - bought.soldUnits)
  })
})
