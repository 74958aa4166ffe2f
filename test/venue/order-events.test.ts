import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { eventually } from '../harness/gateway.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

type OrderAnswer = TaskAnswer & {
  result: { resting: boolean; asked_size: string; position_size: string; withdrawn_usd: string }
}

describe('orders and their events', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp()
    await app.price('BTC', 100_000)
    await app.price('ETH', 3_000)
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  const executed = async (name: string, body: object, user: User): Promise<OrderAnswer> => {
    const said = await app.call(name, body, user)
    assert.equal(said.outcome, 'executed', JSON.stringify(said))
    return said as OrderAnswer
  }
  const refused = async (name: string, body: object, user: User): Promise<Fault> => {
    const said = await app.call(name, body, user).catch((fault: unknown) => fault)
    assert.ok(said instanceof Fault, JSON.stringify(said))
    return said
  }
  const open = { asset: 'BTC', side: 'long' }

  test('an order without leverage keeps that of the position, then that of the account, and checks the margin of a change', async () => {
    const user = await app.trader('200')
    const leverageOf = async () => (await app.venueState(user)).positions[0]?.leverage.value
    await executed('perp_open', { ...open, size: '0.01', leverage: 10 }, user)
    await executed('perp_open', { ...open, notional_usd: '200' }, user)
    assert.equal(await leverageOf(), 10)
    const fault = await refused('perp_open', { ...open, notional_usd: '200', leverage: 1 }, user)
    assert.equal(fault.code, 'insufficient_balance')
    assert.ok(Number(fault.extras.required) > 1_000, JSON.stringify(fault.extras))
    assert.match(fault.message, /leverage 1 needs [0-9.]+ USDC, but only [0-9.]+ USDC is available/)
    await executed('perp_close', { asset: 'BTC' }, user)
    await executed('perp_open', { ...open, notional_usd: '100' }, user)
    assert.equal(await leverageOf(), 10)
    const other = await app.trader('1000')
    await executed('perp_open', { ...open, notional_usd: '100' }, other)
    assert.equal((await app.venueState(other)).positions[0]?.leverage.value, 1)
  })

  test('the published minimum is accepted in every market, and a short is checked at the price of its order', async () => {
    const user = await app.trader()
    for (const asset of ['ETH', 'HYPE', 'BTC'])
      await executed('perp_open', { asset, side: 'long', notional_usd: '10' }, user)
    const fault = await refused(
      'perp_open',
      { ...open, side: 'short', size: '0.00010', slippage_pct: '5' },
      user,
    )
    assert.equal(fault.issues[0]?.type, 'below_minimum')
    assert.match(fault.message, /worth 9\.5 USD/)
    assert.equal(fault.issues[0]?.ctx?.minimum_size, '0.00011')
    const seller = await app.trader()
    await executed('perp_open', { ...open, size: '0.001' }, seller)
    const part = { asset: 'BTC', size: '0.00010', slippage_pct: '5' }
    const less = await refused('perp_close', part, seller)
    assert.deepEqual([less.issues[0]?.type, less.issues[0]?.ctx?.minimum_size], ['below_minimum', '0.00011'])
    assert.match(less.message, /worth 9\.5 USD/)
    await executed('perp_close', { ...part, size: '0.00011' }, seller)
    await executed('perp_close', { asset: 'BTC' }, seller)
  })

  test('a post-only market order is rejected', async () => {
    const user = await app.trader()
    for (const [name, body] of [
      ['perp_open', { ...open, size: '0.001', tif: 'alo' }],
      ['spot_venue_buy', { asset: 'HYPE', size: '1', tif: 'alo' }],
    ] as const)
      assert.deepEqual((await refused(name, body, user)).issues[0]?.path, ['tif'])
  })

  test('the result of a close states that it rests, or that less was open than requested', async () => {
    const user = await app.trader()
    await executed('perp_open', { ...open, size: '0.002' }, user)
    const rests = await executed(
      'perp_close',
      { asset: 'BTC', order_type: 'limit', limit_price: '120000' },
      user,
    )
    assert.equal(rests.result.resting, true)
    assert.match(rests.message, /rests in the book/)
    assert.equal(rests.result.legs[0]?.role, 'close')
    await executed('perp_cancel', { order_id: rests.result.order_id }, user)
    const all = await executed('perp_close', { asset: 'BTC', size: '0.5' }, user)
    assert.deepEqual([all.result.asked_size, all.result.position_size], ['0.5', '0.002'])
    assert.match(all.message, /requested size 0\.5 BTC exceeds the open position of 0\.002/)
    assert.equal(all.result.resting, false)
  })

  test('a rejection of the venue has a code, and its text has no asset index', async () => {
    const user = await app.trader()
    const limit = { ...open, size: '0.001', order_type: 'limit' }
    const crossing = await app.call('perp_open', { ...limit, tif: 'alo', limit_price: '101000' }, user)
    assert.equal(crossing.error?.code, 'post_only_crosses')
    const far = await app.call('perp_open', { ...limit, limit_price: '10000' }, user)
    assert.equal(far.error?.code, 'price_too_far', JSON.stringify(far.error))
    for (const { error } of [crossing, far]) assert.doesNotMatch(error?.message ?? '', /asset=/)
  })

  test('an incomplete set-up names the next call with its body', async () => {
    const user = await app.addUser()
    const first = await refused('perp_open', { ...open, size: '0.001' }, user)
    assert.deepEqual(first.extras.next_call, {
      operation: 'perp_setup',
      method: 'POST',
      path: '/v1/perp/setup',
      body: {},
    })
    assert.equal(first.extras.running_task_id, null)
    await app.call('perp_setup', {}, user)
    const second = await refused('perp_open', { ...open, size: '0.001' }, user)
    assert.deepEqual(second.extras.next_call, {
      operation: 'perp_fund',
      method: 'POST',
      path: '/v1/perp/fund',
      body: { amount_usd: '5' },
    })
    assert.match(second.message, /perp\/fund/)
  })

  test('while a task sets trading up, an order names that task', async () => {
    const user = await app.addUser()
    await app.credit(user, '100')
    const slow = { endpoint: 'exchange', type: 'approveAgent', effect: 'latency', latencyMs: 3_000, count: 1 }
    await app.market.control('POST', '/faults', slow)
    const settingUp = app.call('perp_setup', {}, user)
    await eventually(async () => {
      const faults = await app.market.control<{ struck: number }[]>('GET', '/faults')
      return faults.some(({ struck }) => struck > 0) || undefined
    }, 'the approval is sent')
    const fault = await refused('perp_open', { ...open, size: '0.001' }, user)
    const { task_id, outcome } = await settingUp
    assert.deepEqual([fault.code, fault.extras.running_task_id], ['setup_incomplete', task_id])
    assert.ok(
      fault.message.includes(`the task ${task_id} (perp_setup) is running and may complete it: wait for it`),
      fault.message,
    )
    assert.equal(outcome, 'executed')
  })

  test('a position shows the profit at the mark price beside it', async () => {
    const user = await app.trader()
    await app.price('BTC', 100_000)
    await executed('perp_open', { ...open, size: '0.01', leverage: 5 }, user)
    await app.price('BTC', 101_000)
    const { positions } = (await app.call('perp_orders', {}, user)) as unknown as {
      positions: { mark_price: string; entry_price: string; size: string; unrealized_pnl_usd: string }[]
    }
    const [position] = positions
    const profit = (Number(position?.mark_price) - Number(position?.entry_price)) * Number(position?.size)
    assert.ok(Math.abs(profit - Number(position?.unrealized_pnl_usd)) < 0.01, JSON.stringify(position))
    assert.ok(profit > 5, String(profit))
    await app.price('BTC', 100_000)
  })
})
