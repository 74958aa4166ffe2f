/** kill -9 while exits of purchases at the prediction market are placed and placed anew. */
import assert from 'node:assert/strict'
import { executed } from '../journeys/predmkt-calls.ts'
import { buy, exitsIn, needed, orderOf, shown } from './predmkt-exit-points.ts'
import { type Case, killInCases } from './predmkt-points.ts'

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

killInCases('exits at the prediction market', [placed, placedAnew])
