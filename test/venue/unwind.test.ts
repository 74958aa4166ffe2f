import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** A resting entry whose stop the venue rejects is cancelled, and what was filled before the cancel is closed. */

type Row = Record<string, unknown>
type Order = { r: boolean }

const throttled = {
  status: 'err',
  response: 'Too many cumulative requests sent (10001 > 10000) for cumulative volume traded $1.',
}
const isClose = ({ type, orders }: Row) => type === 'order' && (orders as Order[])[0]?.r === true

describe('the unwinding of a resting entry', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({ quiet: 'the test decides what happens between two actions', lagging: true })
  })
  beforeEach(async () => {
    app.lag.set({})
    await app.price('BTC', 100_000)
  })
  after(() => app?.[Symbol.asyncDispose]())

  const positionsOf = async (user: User) => (await app.venueState(user)).positions
  const rejectStop = (action: Row, reply: Row): Row => {
    const { statuses } = (reply.response as { data: { statuses: Row[] } }).data ?? {}
    if (action.type === 'order' && statuses?.length === 2) statuses[1] = { error: 'Invalid TP/SL price.' }
    return reply
  }
  const openResting = async (user: User) => {
    const order = { asset: 'BTC', side: 'long', size: '0.01', order_type: 'limit', limit_price: '99000' }
    const begun = await app.call('perp_open', { ...order, sl_price: '90000' }, user)
    return begun.completed_at ? begun : ((await app.waitForEnd(user, begun.task_id)) as unknown as TaskAnswer)
  }

  test('an entry that fills while it is cancelled is closed, although the close is throttled at first', async () => {
    const user = await app.trader()
    const sent: string[] = []
    app.lag.set({
      rewriteReply: rejectStop,
      async intercept(action) {
        if (action.type === 'cancel') {
          sent.push('cancel')
          await app.price('BTC', 98_000)
          await eventually(async () => (await positionsOf(user)).length > 0 || undefined, 'the entry fills')
        }
        if (!isClose(action)) return undefined
        sent.push('close')
        return sent.filter((each) => each === 'close').length === 1 ? throttled : undefined
      },
    })
    const done = await openResting(user)
    assert.deepEqual([done.status, done.outcome], ['failed', 'partial'], JSON.stringify(done))
    assert.deepEqual(sent, ['cancel', 'close', 'close'])
    assert.deepEqual(await positionsOf(user), [])
    assert.deepEqual([done.result.order_status, done.result.filled_size], ['filled', '0.01'])
    assert.deepEqual(done.fills.map(({ side }) => side).sort(), ['buy', 'sell'])
  })

  test('an entry whose cancel is throttled at first is cancelled once and reported as ended', async () => {
    const user = await app.trader()
    const sent: string[] = []
    app.lag.set({
      rewriteReply: rejectStop,
      intercept(action) {
        if (action.type !== 'cancel') return undefined
        sent.push('cancel')
        return sent.length === 1 ? throttled : undefined
      },
    })
    const done = await openResting(user)
    assert.deepEqual([done.status, done.outcome], ['failed', 'not_executed'], JSON.stringify(done))
    assert.deepEqual(sent, ['cancel', 'cancel'])
    assert.deepEqual(await positionsOf(user), [])
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
    assert.deepEqual([done.result.order_status, done.result.filled_size], ['rejected', '0'])
  })
})
