import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** The venue loses replies, resets connections and sheds load: one task still makes one order. */

describe('unknown outcomes', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({
      uncounted: 'injected 429s would silence a gateway that counts for a minute',
    })
    await app.price('BTC', 100_000)
    await app.price('ETH', 3_000)
  })
  beforeEach(() => app.market.control('DELETE', '/faults', {}))
  after(() => app?.[Symbol.asyncDispose]())

  const fault = (what: object) => app.market.control('POST', '/faults', what)
  const ordersOf = async (user: User) => (await app.venueState(user)).orders
  const buy = (user: User, more: object = {}, key?: string): Promise<TaskAnswer> =>
    app.call('perp_open', { asset: 'ETH', side: 'long', size: '0.01', ...more }, user, key ? { key } : {})

  const lost: [string, object][] = [
    ['the reply is lost after the order was accepted', { effect: 'dropReply' }],
    ['the connection breaks before the order was read', { effect: 'reset' }],
    ['the venue sheds load', { effect: 'status', status: 429 }],
    ['the venue fails', { effect: 'status', status: 502 }],
  ]
  for (const [what, effect] of lost)
    test(`one order where ${what}`, async () => {
      const user = await app.trader()
      await fault({ endpoint: 'exchange', type: 'order', count: 1, ...effect })
      const done = await buy(user)
      assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
      const orders = await ordersOf(user)
      assert.deepEqual(
        orders.map(({ cloid, status }) => [cloid, status]),
        [[done.result.cloid, 'filled']],
      )
    })

  test('the same key three times at once is one order', async () => {
    const user = await app.trader()
    await fault({ endpoint: 'exchange', type: 'order', count: 1, effect: 'dropReply' })
    const all = await Promise.all(['k', 'k', 'k'].map((key) => buy(user, {}, key)))
    assert.equal(new Set(all.map(({ task_id }) => task_id)).size, 1)
    assert.equal((await ordersOf(user)).length, 1)
  })

  /** As a database that went back has forgotten it; the record of the account knows its orders still. */
  const forget = async (taskId: string) => {
    for (const statement of [
      'delete from tx_attempt where effect_id in (select id from effect where task_id = $1)',
      'delete from effect where task_id = $1',
      'delete from idempotency where task_id = $1',
      'delete from task where id = $1',
    ])
      await app.database.pool.query(statement, [taskId])
  }
  const protectedLimit = {
    order_type: 'limit',
    limit_price: '2000',
    size: '0.1',
    sl_price: '1500',
  }
  for (const [what, order] of [
    ['was filled', {}],
    ['rests with its stop', protectedLimit],
  ] as const)
    test(`an order that ${what} is found by a repeat under its key, where the database has forgotten it`, async () => {
      const user = await app.trader()
      const first = await buy(user, order, 'forgotten')
      // A restore and a failover take longer than reads lag.
      await app.market.control('POST', '/advance', { ms: 2_000 })
      await app.catchUp()
      const placed = await ordersOf(user)
      await forget(first.task_id)
      const again = await buy(user, order, 'forgotten')
      assert.notEqual(again.task_id, first.task_id)
      assert.equal(again.outcome, 'executed', JSON.stringify(again))
      assert.deepEqual(again.result, first.result)
      assert.deepEqual(await ordersOf(user), placed)
    })

  test('a lost reply to leverage, cancel and approval is looked up and not repeated under another nonce', async () => {
    const user = await app.addUser()
    await app.credit(user, '1000')
    for (const type of ['approveAgent', 'updateLeverage', 'cancel'])
      await fault({ endpoint: 'exchange', type, count: 1, effect: 'dropReply' })
    const setup = await app.call('perp_setup', {}, user)
    assert.equal(setup.outcome, 'executed', JSON.stringify(setup))
    const limit = { order_type: 'limit', limit_price: '2000', size: '0.1', leverage: 7 }
    const resting = await buy(user, limit)
    assert.equal(resting.result.order_status, 'resting', JSON.stringify(resting))
    const { order_id } = resting.result
    const cancelled = await app.call('perp_cancel', { order_id }, user)
    assert.deepEqual([cancelled.outcome, cancelled.result.venue_status], ['executed', 'canceled'])
    // One request each: approval, leverage, order, cancel.
    assert.equal((await app.venueState(user)).requests, 4)
  })

  test('an order that never reached the venue ends as not executed after its expiry', async () => {
    const user = await app.trader()
    await fault({ endpoint: 'exchange', type: 'order', effect: 'status', status: 503 })
    const begun = await app.call('perp_open', { asset: 'ETH', side: 'long', size: '0.01' }, user, {
      timeoutMs: 4_000,
    })
    assert.deepEqual([begun.status, begun.state, begun.outcome], ['running', 'reconciling', 'unknown'])
    await app.market.control('POST', '/advance', { ms: 60_000 })
    const end = await app.waitForEnd(user, begun.task_id)
    assert.deepEqual([end.status, end.outcome, end.error?.code], ['failed', 'not_executed', 'expired'])
    await app.market.control('DELETE', '/faults', {})
    assert.deepEqual(await ordersOf(user), [])
  })

  test('an order exists once although the venue crashes and restarts during it', async () => {
    const user = await app.trader()
    await fault({ endpoint: 'exchange', type: 'order', effect: 'dropReply', count: 1 })
    await fault({ endpoint: 'info', type: 'orderStatus', effect: 'status', status: 503, count: 3 })
    const begun = app.call('perp_open', { asset: 'ETH', side: 'long', size: '0.01' }, user)
    await eventually(async () => ((await ordersOf(user)).length > 0 ? true : undefined), 'the order exists')
    await app.market.restart()
    const done = await begun
    const end = done.outcome === 'executed' ? done : await app.waitForEnd(user, done.task_id)
    assert.equal(end.outcome, 'executed', JSON.stringify(end))
    assert.equal((await ordersOf(user)).length, 1)
  })

  test('in a storm of forty orders every outcome agrees with the venue', async () => {
    const users = await Promise.all(Array.from({ length: 4 }, () => app.trader('5000')))
    await fault({ endpoint: 'exchange', effect: 'dropReply', rate: 0.25, seed: 11 })
    await fault({ endpoint: 'exchange', effect: 'reset', rate: 0.15, seed: 12 })
    await fault({ effect: 'status', status: 429, rate: 0.1, seed: 13 })
    const tasks = await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const user = users[at % users.length]!
        const limit = at % 3 === 0 ? { order_type: 'limit', limit_price: '2500' } : {}
        for (let attempt = 0; ; attempt++)
          try {
            const begun = await app.call(
              'perp_open',
              { asset: 'ETH', side: 'long', size: '0.01', ...limit },
              user,
              { wait: false, key: `storm-${at}` },
            )
            return { user, taskId: begun.task_id }
          } catch (error) {
            // A rejected read: nothing exists, and the same key may be used again.
            if (attempt > 20) throw error
          }
      }),
    )
    const ends = await Promise.all(
      tasks.map(async ({ user, taskId }) => ({ user, end: await app.waitForEnd(user, taskId) })),
    )
    await app.market.control('DELETE', '/faults', {})
    for (const user of users) {
      const orders = await ordersOf(user)
      const own = ends.filter((each) => each.user === user).map(({ end }) => end)
      assert.equal(new Set(orders.map(({ cloid }) => cloid)).size, orders.length)
      for (const end of own) {
        const result = end.result as TaskAnswer['result'] | null
        const order = orders.find(({ cloid }) => cloid === result?.cloid)
        if (end.outcome === 'executed') assert.ok(order, JSON.stringify(end))
        else assert.equal(end.outcome, 'not_executed', JSON.stringify(end))
      }
      const executed = own.filter(({ outcome }) => outcome === 'executed')
      assert.equal(orders.length, executed.length)
    }
    assert.ok(ends.filter(({ end }) => end.outcome === 'executed').length >= 30)
  })

  test('two deposits of one amount and moment are two credits, and two withdrawals two arrivals', async () => {
    const user = await app.addUser()
    await app.fundWallet(user, '500')
    const fund = () => app.call('perp_fund', { amount: '20000000' }, user)
    const funded = await Promise.all([fund(), fund()])
    assert.deepEqual(
      funded.map(({ outcome }) => outcome),
      ['executed', 'executed'],
    )
    assert.equal(new Set(funded.map(({ result }) => result.tx_hash)).size, 2)
    assert.equal((await app.venueState(user)).ledger.length, 2)
    await fault({ endpoint: 'exchange', type: 'withdraw3', count: 1, effect: 'dropReply' })
    const withdraw = () => app.call('perp_withdraw', { amount_usd: '15' }, user)
    const taken = await Promise.all([withdraw(), withdraw()])
    assert.deepEqual(
      taken.map(({ outcome }) => outcome),
      ['executed', 'executed'],
      JSON.stringify(taken),
    )
    assert.equal(new Set(taken.map(({ result }) => result.tx_hash)).size, 2)
    const left = await app.venueState(user)
    assert.equal(left.ledger.filter(({ delta }) => delta.type === 'withdraw').length, 2)
    assert.equal(Number(left.rawUsd), 10)
  })

  test('an agent that the venue has revoked is replaced by another set-up', async () => {
    const user = await app.trader()
    const status = await app.call('perp_setup_status', {}, user)
    await app.market.control('POST', '/agents/expire', { address: status.api_wallet_address })
    const refused = await buy(user)
    assert.deepEqual(
      [refused.status, refused.outcome, refused.error?.code],
      ['failed', 'not_executed', 'setup_incomplete'],
    )
    await assert.rejects(buy(user), { code: 'setup_incomplete' })
    assert.equal((await app.call('perp_setup_status', {}, user)).setup_complete, false)
    const again = await app.call('perp_setup', {}, user)
    assert.equal(again.outcome, 'executed')
    assert.notEqual(again.result.api_wallet_address, status.api_wallet_address)
    assert.equal((await buy(user)).outcome, 'executed')
  })
})
