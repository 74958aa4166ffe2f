/** kill -9 while exits of purchases at the prediction market are placed, placed anew and fire. */
import assert from 'node:assert/strict'
import { OrderSide } from '@polymarket/client'
import { otherTrader } from '../harness/prediction-clients.ts'
import {
  buyTerms,
  executed,
  type Market,
  micros,
  outcomeOf,
  sellable,
  type VenueRecord,
} from '../journeys/predmkt-calls.ts'
import {
  type Attempt,
  afterStep,
  type Case,
  killInCases,
  type PredmktPoints,
  price,
} from './predmkt-points.ts'

type Exit = { leg: 'tp' | 'sl'; state: string; order_id: string | null }
const needed = [...afterStep, /^db:update prediction_exit:after/]

/** Buys with exits at the gateway that dies later, and returns what the chain and the venue had before. */
async function buy(
  points: PredmktPoints,
  { person }: Attempt,
  market: Market,
  terms: object,
  amount: string,
) {
  const was = await points.held(outcomeOf(market))
  const sales = (await points.ordersOf('SELL')).length
  const body = { ...buyTerms(market, amount), ...terms }
  const { result } = await executed(person, '/predmkt/order', body)
  const sold = sellable(result.settled_shares!)
  return {
    orderId: result.order_id!,
    /** What the exits can sell. */
    sold,
    /** The sales that the gateway has placed since, by the venue's own record. */
    sales: async () => (await points.ordersOf('SELL')).slice(sales),
    async assertSold(at: string) {
      const rest = micros(result.settled_shares!) - sold
      assert.equal((await points.held(outcomeOf(market))).shares, was.shares + rest, `${at}: the shares`)
    },
  }
}

/** The exits of a purchase once they are in these states. */
const exitsIn =
  (points: PredmktPoints, orderId: string, states: Partial<Record<Exit['leg'], string>>) => async () => {
    const { rows } = await points.app.admin.query<Exit>(
      'select leg, state, order_id from prediction_exit where entry_order_id = $1',
      [orderId],
    )
    const isThere = ([leg, state]: [string, string]) =>
      rows.some((row) => row.leg === leg && row.state === state)
    return Object.entries(states).every(isThere) ? rows : undefined
  }
const orderOf = (rows: readonly Exit[]) => rows.find(({ leg }) => leg === 'tp')!.order_id!
const shown = ({ id, status, matched }: VenueRecord['orders'][number]) => [id, status, micros(matched)]

const placed: Case = {
  title: 'take-profit that rests',
  shortPoint: 'db:insert prediction_order:after',
  needed,
  isAlone: true,
  async run(points, attempt) {
    const { at, arm } = attempt
    const market = points.nextMarket()
    const bought = await buy(points, attempt, market, { take_profit_price: '0.9' }, '4')
    arm()
    const rests = exitsIn(points, bought.orderId, { tp: 'resting' })
    const id = orderOf(await points.afterwards(attempt, rests, 'the take-profit rests'))
    assert.deepEqual((await bought.sales()).map(shown), [[id, 'LIVE', 0n]], `${at}: one sale rests`)
    await points.revive()
    await executed(points.person, '/predmkt/order/cancel', { order_id: id })
  },
}

const placedAnew: Case = {
  title: 'take-profit that is placed anew',
  shortPoint: 'db:insert prediction_order:after',
  needed,
  isAlone: true,
  async run(points, attempt) {
    const { at, arm } = attempt
    const market = points.nextMarket()
    const bought = await buy(points, attempt, market, { take_profit_price: '0.9' }, '4')
    const rests = exitsIn(points, bought.orderId, { tp: 'resting' })
    const first = orderOf(await points.afterwards(attempt, rests, 'the take-profit rests'))
    arm()
    await points.venue('POST', '/restart', { forMs: 200, nextMs: 200, wipe: true })
    const isNew = async () => {
      const found = await rests()
      return found && orderOf(found) !== first ? found : undefined
    }
    const second = orderOf(await points.afterwards(attempt, isNew, 'the take-profit rests again'))
    assert.deepEqual(
      (await bought.sales()).map(shown),
      [
        [first, 'CANCELED', 0n],
        [second, 'LIVE', 0n],
      ],
      `${at}: one sale rests`,
    )
    await points.revive()
    await executed(points.person, '/predmkt/order/cancel', { order_id: second })
  },
}

const filled: Case = {
  title: 'take-profit that fills in the book',
  shortPoint: 'db:with prediction_fill:after',
  needed: [/^net:polymarket:after/, /^db:with prediction_fill:after/, /^db:update prediction_exit:after/],
  isAlone: true,
  async run(points, attempt) {
    const { at, arm } = attempt
    const [market] = points.markets
    const terms = { take_profit_price: '0.45', stop_loss_price: '0.1' }
    const bought = await buy(points, attempt, market!, terms, '4')
    const armed = exitsIn(points, bought.orderId, { tp: 'resting', sl: 'watched' })
    const id = orderOf(await points.afterwards(attempt, armed, 'both exits are armed'))
    await points.venue('POST', '/price', { market: market!.slug, price: 0.5 })
    const stranger = await otherTrader(points.app.control, '100')
    arm()
    const bid = { tokenId: outcomeOf(market!), price: 0.45, side: OrderSide.BUY }
    await stranger.placeLimitOrder({ ...bid, size: Number(bought.sold) / 1_000_000 })
    const ended = exitsIn(points, bought.orderId, { tp: 'filled', sl: 'cancelled' })
    await points.afterwards(attempt, ended, 'the take-profit has sold')
    await points.venue('POST', '/price', { market: market!.slug, price })
    assert.deepEqual((await bought.sales()).map(shown), [[id, 'MATCHED', bought.sold]], `${at}: one sale`)
    await bought.assertSold(at)
    const fills = 'select count(*) from prediction_fill where order_id = $1'
    const events = `select count(*) from user_event where type = 'predmkt.trade.confirmed' and body->>'order_id' = $1`
    assert.deepEqual([await points.count(fills, [id]), await points.count(events, [id])], [1, 1], at)
  },
}

const watched: Case = {
  title: 'take-profit below the smallest order that fires',
  shortPoint: 'db:insert prediction_order:after',
  needed,
  isAlone: true,
  async run(points, attempt) {
    const { at, arm } = attempt
    const market = points.nextMarket()
    const bought = await buy(points, attempt, market, { take_profit_price: '0.45' }, '1.5')
    const isWatched = exitsIn(points, bought.orderId, { tp: 'watched' })
    await points.afterwards(attempt, isWatched, 'the take-profit is watched')
    arm()
    await points.venue('POST', '/price', { market: market.slug, price: 0.5 })
    const ended = exitsIn(points, bought.orderId, { tp: 'filled' })
    await points.afterwards(attempt, ended, 'the take-profit has sold')
    await points.venue('POST', '/price', { market: market.slug, price })
    const sales = await bought.sales()
    assert.deepEqual(
      sales.map(({ status, matched }) => [status, micros(matched)]),
      [['MATCHED', bought.sold]],
      `${at}: one sale`,
    )
    await bought.assertSold(at)
  },
}

const stopLoss: Case = {
  title: 'stop-loss that fires while the take-profit rests',
  shortPoint: 'net:polymarket:after@5',
  needed,
  isAlone: true,
  async run(points, attempt) {
    const { at, arm } = attempt
    const market = points.nextMarket()
    const terms = { take_profit_price: '0.9', stop_loss_price: '0.2' }
    const bought = await buy(points, attempt, market, terms, '4')
    const armed = exitsIn(points, bought.orderId, { tp: 'resting', sl: 'watched' })
    const id = orderOf(await points.afterwards(attempt, armed, 'both exits are armed'))
    arm()
    await points.venue('POST', '/price', { market: market.slug, price: 0.15 })
    const ended = exitsIn(points, bought.orderId, { tp: 'cancelled', sl: 'filled' })
    await points.afterwards(attempt, ended, 'the stop-loss has sold')
    await points.venue('POST', '/price', { market: market.slug, price })
    const sales = await bought.sales()
    assert.deepEqual(
      sales.map(({ status, matched }) => [status, micros(matched)]),
      [
        ['CANCELED', 0n],
        ['MATCHED', bought.sold],
      ],
      `${at}: one sale`,
    )
    assert.equal(sales[0]!.id, id, at)
    await bought.assertSold(at)
  },
}

killInCases('exits at the prediction market', [placed, placedAnew, filled, watched, stopLoss])
