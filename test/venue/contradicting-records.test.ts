import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

/** An empty record of the venue ends no task while another record contradicts it. */

const noTransfers = (type: string, answer: unknown) => (type === 'userNonFundingLedgerUpdates' ? [] : answer)

describe('contradicting records', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp({
      quiet: 'each test rewrites the answers of the venue itself',
      lagging: true,
      graceMs: 300,
    })
  })
  beforeEach(async () => {
    app.lag.set({})
    await app.market.control('DELETE', '/faults', {})
    await app.market.control('POST', '/settings', { requestsPerAddress: 0 })
    await app.price('BTC', 100_000)
    await app.price('@1', 40)
  })
  after(() => app?.[Symbol.asyncDispose]())

  const fault = (what: object) => app.market.control('POST', '/faults', what)
  const find = (user: User, { task_id }: TaskAnswer) => app.main.taskEngine.tasks.find(user.id, task_id)
  /** Waits until the request was sent so often after the task began, or the task has ended. */
  const askedOrEnded = (user: User, begun: TaskAnswer, type: string, times: number) => {
    const from = app.lag.asked(type)
    return eventually(async () => {
      const task = await find(user, begun)
      return task.completed_at !== null || app.lag.asked(type) >= from + times ? task : undefined
    }, `${type} was requested`)
  }

  test('a withdrawal that no list shows does not fail while the cash is missing', async () => {
    const user = await app.trader('100')
    await fault({ endpoint: 'exchange', type: 'withdraw3', count: 1, effect: 'dropReply' })
    app.lag.set({ rewrite: noTransfers })
    const begun = await app.call('perp_withdraw', { amount_usd: '15' }, user, { wait: false })
    const doubted = await askedOrEnded(user, begun, 'userFunding', 2)
    assert.equal(doubted.completed_at, null, JSON.stringify(doubted))
    app.lag.set({})
    const end = await app.waitForEnd(user, begun.task_id)
    assert.deepEqual([end.status, end.outcome], ['completed', 'executed'], JSON.stringify(end))
    assert.equal(Number((await app.venueState(user)).rawUsd), 85)
  })

  test('a transfer between the sides that no list shows does not fail while the dollars have moved', async () => {
    const user = await app.trader('500')
    await fault({ endpoint: 'exchange', type: 'usdClassTransfer', count: 1, effect: 'dropReply' })
    app.lag.set({ rewrite: noTransfers })
    const begun = await app.call('spot_venue_buy', { asset: 'HYPE', size: '2' }, user, { wait: false })
    const doubted = await askedOrEnded(user, begun, 'userFillsByTime', 2)
    assert.equal(doubted.completed_at, null, JSON.stringify(doubted))
    app.lag.set({})
    const end = await app.waitForEnd(user, begun.task_id)
    assert.deepEqual([end.status, end.outcome], ['completed', 'executed'], JSON.stringify(end))
  })

  test('a transfer that becomes visible between two reads of one look-up does not fail', async () => {
    const user = await app.trader('500')
    await fault({ endpoint: 'exchange', type: 'usdClassTransfer', count: 1, effect: 'dropReply' })
    const fills = app.lag.asked('userFillsByTime')
    // The read that explains the balance requests the fills beside the transfers.
    const hidden = (type: string, answer: unknown) =>
      app.lag.asked('userFillsByTime') > fills ? answer : noTransfers(type, answer)
    app.lag.set({ rewrite: hidden })
    const end = await app.call('spot_venue_buy', { asset: 'HYPE', size: '2' }, user, { timeoutMs: 60_000 })
    app.lag.set({})
    assert.deepEqual([end.status, end.outcome], ['completed', 'executed'], JSON.stringify(end))
  })

  test('a balance that lags behind a purchase cancels none of its exits', async () => {
    const user = await app.trader('1000')
    const bought = await app.call('spot_venue_buy', { asset: 'HYPE', size: '2', sl_price: '30' }, user)
    assert.equal(bought.outcome, 'executed', JSON.stringify(bought))
    await fault({ endpoint: 'exchange', type: 'order', count: 1, effect: 'latency', latencyMs: 700 })
    const begun = await app.call('spot_venue_sell', { asset: 'HYPE', size: '1' }, user, { wait: false })
    app.lag.set({
      rewrite: (type, answer) =>
        type === 'spotClearinghouseState'
          ? {
              balances: (answer as { balances: { coin: string }[] }).balances.filter(
                ({ coin }) => coin !== 'HYPE',
              ),
            }
          : answer,
    })
    await askedOrEnded(user, begun, 'spotClearinghouseState', 1)
    app.lag.set({})
    const end = await app.waitForEnd(user, begun.task_id)
    assert.equal(end.outcome, 'executed', JSON.stringify(end))
    const { orders } = await app.call('spot_venue_orders', {}, user)
    assert.deepEqual(
      orders.map(({ order_id }) => order_id),
      bought.result.sl_oids,
    )
  })

  test('a close and a cancel of all orders above the request limit are sent again after ten seconds and execute', async () => {
    const user = await app.trader('1000')
    const opened = await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.002' }, user)
    assert.equal(opened.outcome, 'executed', JSON.stringify(opened))
    const limit = { asset: 'BTC', side: 'long', size: '0.001', order_type: 'limit', limit_price: '60000' }
    assert.equal((await app.call('perp_open', limit, user)).result.order_status, 'resting')
    await app.market.control('POST', '/settings', { requestsPerAddress: -1_000_000 })
    const before = (await app.call('perp_setup_status', {}, user)) as TaskAnswer & {
      venue_requests: { limited: boolean } | null
    }
    assert.equal(typeof before.venue_requests?.limited, 'boolean')
    // The first of them takes the one request that the venue allows in ten seconds.
    const retries: unknown[] = []
    for (const body of [{ asset: 'BTC', size: '0.001' }, { asset: 'BTC' }]) {
      const closed = await app.call('perp_close', body, user, { timeoutMs: 60_000 })
      assert.deepEqual([closed.status, closed.outcome], ['completed', 'executed'], JSON.stringify(closed))
      retries.push((await find(user, closed)).data.throttled)
    }
    assert.deepEqual(retries, [undefined, { entry: 1 }])
    assert.deepEqual((await app.venueState(user)).positions, [])
    const cancelled = await app.call('perp_cancel_all', {}, user, { timeoutMs: 60_000 })
    assert.deepEqual(
      [cancelled.status, cancelled.outcome],
      ['completed', 'executed'],
      JSON.stringify(cancelled),
    )
    assert.deepEqual((await find(user, cancelled)).data.throttled, { cancel0: 1 })
  })

  test('the transfer of a withdrawal that the venue throttles is signed again, as other exits are', async () => {
    const user = await app.trader('20')
    await app.credit(user, '100', 'USDC')
    const response = 'Too many cumulative requests sent (10001 > 10000) for cumulative volume traded $1.'
    const sent: unknown[] = []
    app.lag.set({
      intercept({ type }) {
        if (type === 'usdClassTransfer') sent.push(type)
        return sent.length === 1 && type === 'usdClassTransfer' ? { status: 'err', response } : undefined
      },
    })
    const done = await app.call('perp_withdraw', { amount_usd: '50' }, user, { timeoutMs: 60_000 })
    assert.deepEqual([done.status, done.outcome], ['completed', 'executed'], JSON.stringify(done))
    assert.deepEqual((await find(user, done)).data.throttled, { transfer: 1 })
    assert.equal(sent.length, 2)
  })
})
