/** kill -9 while a stop-loss at the prediction market sells. */
import assert from 'node:assert/strict'
import { micros } from '../journeys/predmkt-calls.ts'
import { buy, exitsIn, needed, orderOf } from './predmkt-exit-points.ts'
import { type Case, killInCases, price } from './predmkt-points.ts'

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

killInCases('stop-losses at the prediction market', [stopLoss])
