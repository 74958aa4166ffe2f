import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

describe('request budget of the venue', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({ quiet: 'the weight of each request is counted' })
    await app.price('BTC', 100_000)
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  const limit = (weightPerMinute: number) => app.market.control('POST', '/limits', { weightPerMinute })
  const open = { asset: 'BTC', side: 'long', size: '0.001' }
  const rest = { ...open, order_type: 'limit', limit_price: '90000' }
  const fillsOf = async (user: User) => (await app.venueState(user)).fills.length

  test('a request that would exceed the budget is not sent; cancels and closes continue, and nothing is lost', async () => {
    const users = await Promise.all([1, 2, 3, 4].map(() => app.trader()))
    const [first] = users as [User]
    await app.call('perp_open', open, first)
    const resting = await app.call('perp_open', rest, first)
    const weight = 500
    const careful = await app.instance({ weight, from: '127.0.0.2' })
    await limit(weight)
    const answers: TaskAnswer[] = []
    const faults: Fault[] = []
    const one = async (user: User) => {
      try {
        answers.push(await careful.call('perp_open', open, user))
      } catch (fault) {
        if (!(fault instanceof Fault)) throw fault
        faults.push(fault)
      }
    }
    for (let round = 0; round < 8; round += 1) await Promise.all(users.map(one))
    assert.ok(faults.length > 0 && answers.length > 0, `${faults.length} refused, ${answers.length} taken`)
    for (const { code, extras } of faults)
      assert.deepEqual([code, Number(extras.retry_after) > 0], ['unavailable', true])
    const cancelled = await careful.call('perp_cancel', { order_id: resting.result.order_id }, first)
    assert.equal(cancelled.outcome, 'executed', JSON.stringify(cancelled))
    const closed = await careful.call('perp_close', { asset: 'BTC' }, first)
    assert.equal(closed.outcome, 'executed', JSON.stringify(closed))
    assert.equal(careful.rateLimitedCount(), 0)
    assert.ok(careful.budget.used() <= weight)
    await limit(0)
    const fills = (await Promise.all(users.map(fillsOf))).reduce((sum, n) => sum + n, 0)
    assert.ok(answers.every(({ outcome }) => outcome === 'executed'))
    assert.ok(fills >= answers.length + 2, `${fills} fills of ${answers.length} orders`)
  })

  test('users who never traded or funded use nothing of what is reserved for exits', async () => {
    const trader = await app.trader()
    await app.call('perp_open', open, trader)
    const strangers = await Promise.all(Array.from({ length: 14 }, () => app.addUser()))
    const weight = 500
    const careful = await app.instance({ weight })
    const exits = [
      ['perp_cancel', { order_id: '1' }],
      ['spot_venue_cancel_all', {}],
      ['perp_withdraw', { amount_usd: '5' }],
      ['perp_close', { asset: 'BTC' }],
      ['spot_venue_sell', { asset: 'HYPE', size: '1' }],
    ] as const
    const refusedExit = (name: string, input: object, user: User) =>
      careful.call(name, input, user).catch((fault: unknown) => {
        if (!(fault instanceof Fault)) throw fault
      })
    for (const user of strangers) for (const [name, input] of exits) await refusedExit(name, input, user)
    assert.ok(careful.budget.used() <= (weight * 85) / 100, String(careful.budget.used()))
    const closed = await careful.call('perp_close', { asset: 'BTC' }, trader)
    assert.equal(closed.outcome, 'executed', JSON.stringify(closed))
  })

  test('with little budget left spot purchases are rejected, and holdings can be sold', async () => {
    const user = await app.trader()
    const weight = 1_000
    const careful = await app.instance({ weight })
    const order = { asset: 'HYPE', size: '1' }
    const bought = await careful.call('spot_venue_buy', { ...order, size: '3' }, user)
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    await careful.budget.admit((weight * 88) / 100 - careful.budget.used(), 'work')
    await assert.rejects(careful.call('spot_venue_buy', order, user), { code: 'unavailable' })
    const sold = await careful.call('spot_venue_sell', order, user)
    assert.equal(sold.outcome, 'executed', JSON.stringify(sold))
    const set = await careful.call('spot_venue_tp_sl', { ...order, sl_price: '20' }, user)
    assert.equal(set.outcome, 'executed', JSON.stringify(set))
  })

  test('an action that the venue rejects for its weight is sent again with the same bytes, once', async () => {
    const user = await app.trader()
    const count = 5
    await app.market.control('POST', '/faults', {
      effect: 'status',
      status: 429,
      endpoint: 'exchange',
      count,
    })
    const tasks = await Promise.all([1, 2, 3].map(() => app.call('perp_open', open, user)))
    const ended = await Promise.all(tasks.map(({ task_id }) => app.waitForEnd(user, task_id)))
    assert.deepEqual(
      ended.map(({ outcome }) => outcome),
      ['executed', 'executed', 'executed'],
    )
    const { orders } = await app.venueState(user)
    assert.equal(orders.length, 3)
    assert.equal(new Set(orders.map(({ cloid }) => cloid)).size, 3)
  })
})
