/** What happens at the prediction market without the gateway: it is true there soon. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { OrderSide, type SecureClient } from '@polymarket/client'
import pg from 'pg'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { otherClientOf } from '../harness/prediction-clients.ts'
import {
  cashOf,
  createTrader,
  executed,
  type Market,
  marketBy,
  micros,
  openOrdersOf,
  positionOf,
  predictionVenue,
  run,
  statusOf,
} from './predmkt-calls.ts'
import type { Person } from './users.ts'
import { worldOf } from './world.ts'

type Trade = { id: string; order_id: string; size: string; settlement: string; task_id: string | null }
type Events = { events: { type: string; data: { order_id?: string } }[] }

describe('a user of the gateway trades at the prediction market with another client as well', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let database: pg.Pool
  let venue: ReturnType<typeof predictionVenue>
  let ada: Person
  let other: SecureClient
  let market: Market
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0' },
      { ownWorld: 'its venue restarts without the orders' },
    )
    const world = await worldOf(gateway.world)
    venue = predictionVenue(gateway.world)
    database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    ada = await createTrader(gateway, world, '100')
    other = await otherClientOf({ control: gateway.world, database }, ada)
    assert.equal(other.account.wallet, (await statusOf(ada)).safe_address.toLowerCase())
    const slug = 'ben-summer-wins-the-mayoral-race'
    await venue('POST', '/price', { market: slug, price: 0.4 })
    market = await marketBy(ada, slug)
  })
  after(async () => {
    await database?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  const outcomeId = () => market.outcomes[0]!.outcome_id
  const bid = { price: '0.05', size: '20', side: 'BUY' }
  const buyElsewhere = async (amount: number): Promise<string> => {
    const placed = await other.placeMarketOrder({
      tokenId: outcomeId(),
      amount,
      side: OrderSide.BUY,
      maxPrice: 0.6,
    })
    assert.ok(placed.ok)
    return placed.orderId
  }
  const restElsewhere = async (size: number): Promise<string> => {
    const placed = await other.placeLimitOrder({
      tokenId: outcomeId(),
      price: 0.05,
      size,
      side: OrderSide.BUY,
    })
    assert.ok(placed.ok)
    return placed.orderId
  }
  const isAtRest = async () => {
    const sql = 'select count(*) as due from prediction_account where sync_at is not null'
    return (await database.query<{ due: string }>(sql)).rows[0]!.due === '0'
  }
  const tradesOf = async (orderId: string) =>
    (await ada.call<{ trades: Trade[] }>('GET /predmkt/activity')).body.trades.filter(
      ({ order_id }) => order_id === orderId,
    )
  const eventsOf = async (type: string, orderId: string) =>
    (await ada.call<Events>(`GET /v1/notifications?types=${type}&limit=100`)).body.events.filter(
      ({ data }) => data.order_id === orderId,
    )

  test('a trade of another client is in the activity soon after somebody looks, and otherwise within an hour', async () => {
    const cash = await cashOf(ada)
    const orderId = await buyElsewhere(4)
    const [trade] = await eventually(
      async () => {
        const found = await tradesOf(orderId)
        return found.length > 0 && found.every(({ settlement }) => settlement === 'confirmed')
          ? found
          : undefined
      },
      'the trade is in the activity',
      40_000,
    )
    assert.equal(trade!.task_id, null)
    const position = (await positionOf(ada, outcomeId()))!
    assert.equal(position.size, trade!.size)
    assert.equal(micros(position.cost_usd!), cash - (await cashOf(ada)))
    assert.equal((await eventsOf('predmkt.trade.confirmed', orderId)).length, 1)

    await eventually(isAtRest, 'nothing is open')
    const unseen = await buyElsewhere(2)
    // The account was compared an hour ago.
    const compared = `update prediction_account set trades_through = trades_through - interval '61 minutes'`
    await database.query(compared)
    await eventually(
      async () => (await eventsOf('predmkt.trade.confirmed', unseen)).length === 1,
      'nobody looks, and its event is there',
      20_000,
    )
  })

  test('an order of another client is listed, can be cancelled here, and holds the cash that it needs', async () => {
    const cash = await cashOf(ada)
    // It leaves two dollars.
    const orderId = await restElsewhere(Math.floor(((Number(cash) / 1_000_000 - 2) / 0.05) * 100) / 100)
    const [listed] = await openOrdersOf(ada)
    assert.equal(listed!.id, orderId)
    const order = { outcome_id: outcomeId(), side: 'BUY', order_type: 'FOK', amount_usd: '5' }
    const refused = await run(ada, '/predmkt/order', order)
    assert.deepEqual(
      [refused.outcome, refused.error?.code],
      ['not_executed', 'insufficient_balance'],
      JSON.stringify(refused),
    )
    assert.match(refused.error!.message, /sum of active orders/)
    const { result } = await executed(ada, '/predmkt/order/cancel', { order_id: orderId })
    assert.deepEqual(result.canceled, [orderId])
    await executed(ada, '/predmkt/order', order)
  })

  test('an order that another client cancels, or that the venue loses, frees its cash at once', async () => {
    for (const end of [
      ({ orderId }: { orderId: string }) => other.cancelOrder({ orderId }),
      () => venue('POST', '/restart', { forMs: 300, nextMs: 300, wipe: true }),
    ]) {
      const cash = await cashOf(ada)
      const { result } = await executed(ada, '/predmkt/order', { outcome_id: outcomeId(), ...bid })
      const orderId = result.order_id!
      assert.equal(await cashOf(ada), cash - 1_000_000n)
      await end({ orderId })
      await eventually(async () => (await cashOf(ada)) === cash, 'the cash is free', 15_000)
      assert.deepEqual(await openOrdersOf(ada), [])
      assert.equal((await eventsOf('predmkt.order.cancelled_by_venue', orderId)).length, 1)
    }
  })

  test('a take-profit that another client cancels is placed anew, and cancelled here it stays away', async () => {
    const order = { outcome_id: outcomeId(), side: 'BUY', order_type: 'FOK', amount_usd: '4' }
    await executed(ada, '/predmkt/order', { ...order, take_profit_price: '0.9' })
    const resting = async (before: string) => {
      const [exit] = (await openOrdersOf(ada)).filter(({ status, id }) => status === 'live' && id !== before)
      return exit?.id
    }
    const first = await eventually(() => resting(''), 'the take-profit rests')
    await other.cancelOrder({ orderId: first })
    const second = await eventually(() => resting(first), 'it rests again')
    assert.equal((await openOrdersOf(ada)).length, 1)
    await executed(ada, '/predmkt/order/cancel', { order_id: second })
    await eventually(isAtRest, 'nothing is open')
    assert.deepEqual(await openOrdersOf(ada), [])
  })
})
