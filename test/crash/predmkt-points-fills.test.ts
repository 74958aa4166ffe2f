/** kill -9 while a take-profit at the prediction market sells. */
import assert from 'node:assert/strict'
import { OrderSide } from '@polymarket/client'
import { otherTrader } from '../harness/prediction-clients.ts'
import { micros, outcomeOf } from '../journeys/predmkt-calls.ts'
import { buy, exitsIn, needed, orderOf, shown } from './predmkt-exit-points.ts'
import { type Case, killInCases, price } from './predmkt-points.ts'

const filled: Case = {
  title: 'take-profit that fills in the book',
  shortPoint: 'db:insert prediction_fill:after',
  needed: [/^net:polymarket:after/, /^db:insert prediction_fill:after/, /^db:update prediction_exit:after/],
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

killInCases('take-profits at the prediction market', [filled, watched])
