import assert from 'node:assert/strict'
import { test } from 'node:test'
import { median } from '#world/hyperliquid/mark.ts'
import { type Perp, perps } from '#world/hyperliquid/markets.ts'
import { accountOf, backstopAddress, bookOf, stateOf } from '#world/hyperliquid/venue.ts'
import {
  createInMemoryVenue,
  dollars,
  type InMemoryVenue,
  limit,
  place,
  take,
  trigger,
  userAt,
} from './venue/in-memory-venue.ts'

const user = userAt(0x51)
const other = userAt(0x52)
const btc = perps[0] as Perp

const funded = (seed: number, usd = 10_000, address = user): InMemoryVenue => {
  const harness = createInMemoryVenue(seed)
  harness.run({ kind: 'price', coin: 'BTC', usd: 100_000, pin: true })
  harness.run({ kind: 'credit', user: address, coin: 'perp', units: dollars(usd) })
  return harness
}

const price = (harness: InMemoryVenue, coin: string, usd: number, afterMs = 0) =>
  harness.run({ kind: 'price', coin, usd, pin: true }, afterMs)

const statuses = (harness: InMemoryVenue, address = user) =>
  harness.orders(address).map(({ status }) => status)
const sizeOf = (harness: InMemoryVenue, asset: number, address = user) =>
  harness.account(address).positions.get(asset)?.size ?? 0

test('a large position is liquidated by a fifth, and whole at the second time within half a minute', () => {
  const harness = createInMemoryVenue(1)
  const back = btc.startUsd * 0.9832
  harness.run({ kind: 'credit', user, coin: 'perp', units: dollars(20_000) })
  harness.act(user, { type: 'updateLeverage', asset: 0, isCross: true, leverage: 40 })
  take(harness, user, btc, true, 700_000)
  const before = sizeOf(harness, 0)
  price(harness, 'BTC', back)
  const left = sizeOf(harness, 0)
  assert.ok(left > before * 0.79 && left <= before * 0.8 + 1, `${left} of ${before}`)
  price(harness, 'BTC', btc.startUsd * 0.9785, 31_000)
  const second = sizeOf(harness, 0)
  assert.ok(second > left * 0.79 && second <= left * 0.8 + 1, `${second} of ${left}`)
  price(harness, 'BTC', btc.startUsd * 0.9735, 10_000)
  assert.equal(sizeOf(harness, 0), 0)
  assert.ok(harness.account(user).raw > 0n)
  harness.assertBalanced()
})

test('the backstop takes over what cannot be sold in time with its margin, and no account ends below zero', () => {
  const harness = createInMemoryVenue(2)
  harness.run({ kind: 'credit', user, coin: 'perp', units: dollars(10_000) })
  harness.act(user, { type: 'updateLeverage', asset: 0, isCross: true, leverage: 40 })
  take(harness, user, btc, false, 380_000)
  assert.ok(sizeOf(harness, 0) < 0)
  price(harness, 'BTC', btc.startUsd * 1.4)
  assert.equal(sizeOf(harness, 0), 0)
  assert.equal(harness.account(user).raw, 0n)
  harness.assertBalanced()
})

test('when the backstop is empty, the most profitable accounts are deleveraged at the price before the move', () => {
  const harness = funded(3, 50_000)
  harness.run({ kind: 'credit', user: other, coin: 'perp', units: dollars(500_000) })
  for (const address of [user, other])
    harness.act(address, { type: 'updateLeverage', asset: 1, isCross: true, leverage: 25 })
  price(harness, 'ETH', 3_000)
  place(harness, other, limit(1, false, '3000', '400'))
  place(harness, user, limit(1, true, '3000', '300', 'Ioc'))
  assert.equal(sizeOf(harness, 1), 3_000_000)
  const backstop = accountOf(harness.venue, backstopAddress)
  harness.venue.state.flows.perp -= backstop.raw
  backstop.raw = 0n
  assert.equal(sizeOf(harness, 1, other), -3_000_000)
  const before = harness.account(other).raw
  price(harness, 'ETH', 1_500)
  assert.equal(sizeOf(harness, 1), 0)
  assert.equal(sizeOf(harness, 1, other), 0)
  assert.equal(harness.account(other).raw, before - dollars(300 * 3_000))
  for (const address of [user, other])
    assert.equal(harness.account(address).fills.at(-1)?.dir, 'Auto-Deleveraging')
  harness.assertBalanced()
})

test('a resting order that its account can no longer pay is cancelled when it is hit', () => {
  const harness = funded(4, 1_000)
  harness.act(user, { type: 'updateLeverage', asset: 0, isCross: true, leverage: 10 })
  harness.act(user, { type: 'updateLeverage', asset: 1, isCross: true, leverage: 10 })
  price(harness, 'ETH', 3_000)
  place(harness, user, limit(0, true, '99000', '0.09'), limit(1, true, '2970', '3'))
  price(harness, 'BTC', 98_900)
  assert.equal(sizeOf(harness, 0), 9_000)
  price(harness, 'ETH', 2_960)
  assert.equal(sizeOf(harness, 1), 0)
  assert.deepEqual(statuses(harness), ['filled', 'marginCanceled'])
  harness.assertBalanced()
})

test('the mark is the median of oracle with basis, book, and smoothed book unless a test pins it', () => {
  const harness = funded(5)
  harness.run({ kind: 'unpin', coin: 'BTC' })
  place(harness, user, limit(0, true, '100004', '0.1', 'Alo'))
  for (let i = 0; i < 20; i += 1) harness.run({ kind: 'tick' }, 3_000)
  const state = stateOf(harness.venue, 0)
  const book = bookOf(harness.venue, 0)
  const [bid = 0, ask = 0] = [book.best({ buy: true }), book.best({ buy: false })]
  const inside = median([bid, ask, state.last])
  const withBasis = state.oracle + state.basis.sum / state.basis.weight
  const smooth = state.smooth.sum / state.smooth.weight
  assert.ok(Math.abs(state.mark - median([withBasis, inside, smooth])) <= 10_000_000)
  assert.ok(state.basis.sum / state.basis.weight > 0, 'a high bid leaves a basis')
})

test('changing a leg of a bracket keeps the pair: the new stop still cancels the target', () => {
  const harness = funded(6)
  const reply = harness.act(user, {
    type: 'order',
    orders: [
      limit(0, true, '101000', '0.02', 'Ioc'),
      trigger(0, false, '110000', '0.02', '110000', 'tp'),
      trigger(0, false, '80000', '0.02', '95000', 'sl'),
    ],
    grouping: 'normalTpsl',
  }) as unknown[]
  assert.deepEqual(reply.slice(1), ['waitingForTrigger', 'waitingForTrigger'])
  const stop = harness.orders(user)[2]
  harness.act(user, {
    type: 'modify',
    oid: stop?.oid,
    order: trigger(0, false, '80000', '0.02', '97000', 'sl'),
  })
  price(harness, 'BTC', 96_900)
  assert.equal(sizeOf(harness, 0), 0)
  assert.deepEqual(statuses(harness), ['filled', 'siblingFilledCanceled', 'canceled', 'filled'])
})

test('changing a resting parent takes its waiting children along', () => {
  const harness = funded(7)
  harness.act(user, {
    type: 'order',
    orders: [limit(0, true, '95000', '0.02'), trigger(0, false, '80000', '0.02', '90000', 'sl')],
    grouping: 'normalTpsl',
  })
  const parent = harness.orders(user)[0]
  harness.act(user, { type: 'modify', oid: parent?.oid, order: limit(0, true, '96000', '0.02') })
  price(harness, 'BTC', 95_900)
  assert.deepEqual(
    harness.orders(user).map(({ status, phase }) => `${status} ${phase}`),
    ['canceled done', 'open armed', 'filled done'],
  )
  price(harness, 'BTC', 89_900)
  assert.equal(sizeOf(harness, 0), 0)
})

test('a market entry that only partly fills leaves a position and no stop, and reports it', () => {
  const harness = funded(8, 10_000_000)
  harness.act(user, { type: 'updateLeverage', asset: 0, isCross: true, leverage: 10 })
  const reply = harness.act(user, {
    type: 'order',
    orders: [
      limit(0, true, '100012', '2', 'Ioc'),
      trigger(0, false, '110000', '2', '110000', 'tp'),
      trigger(0, false, '80000', '2', '95000', 'sl'),
    ],
    grouping: 'normalTpsl',
  }) as [{ filled: { totalSz: string } }, { error: string }, { error: string }]
  assert.ok(Number(reply[0].filled.totalSz) > 0 && Number(reply[0].filled.totalSz) < 2)
  assert.ok(reply[1].error && reply[2].error)
  assert.ok(sizeOf(harness, 0) > 0)
  assert.equal(harness.account(user).open.size, 0)
})

test('a bracket with one invalid leg opens the position and rejects only that leg', () => {
  const harness = funded(9)
  const reply = harness.act(user, {
    type: 'order',
    orders: [
      limit(0, true, '101000', '0.02', 'Ioc'),
      trigger(0, false, '99000', '0.02', '99000', 'tp'),
      trigger(0, false, '80000', '0.02', '95000', 'sl'),
    ],
    grouping: 'normalTpsl',
  }) as [{ filled: unknown }, { error: string }, string]
  assert.ok(reply[0].filled)
  assert.equal(reply[1].error, 'Invalid TP/SL price. asset=0')
  assert.equal(reply[2], 'waitingForTrigger')
})

test('a single trigger rests under its order id, with its client id, and is cancelled by it', () => {
  const harness = funded(13)
  place(harness, user, limit(0, true, '101000', '0.02', 'Ioc'))
  const c = `0x${'7c'.repeat(16)}`
  const stop = { ...trigger(0, false, '80000', '0.02', '95000', 'sl'), c }
  const [reply] = place(harness, user, stop) as [{ resting: { oid: number; cloid: string } }]
  const oid = harness.orders(user).at(-1)?.oid
  assert.deepEqual(reply, { resting: { oid, cloid: c } })
  assert.deepEqual(harness.act(user, { type: 'cancel', cancels: [{ a: 0, o: reply.resting.oid }] }), [
    'success',
  ])
  const pair = harness.act(user, {
    type: 'order',
    orders: [
      trigger(0, false, '110000', '0', '110000', 'tp'),
      trigger(0, false, '80000', '0', '95000', 'sl'),
    ],
    grouping: 'positionTpsl',
  })
  assert.deepEqual(pair, ['waitingForTrigger', 'waitingForTrigger'])
})

test('spot triggers are rejected unless the venue is configured to accept them', () => {
  const harness = funded(10)
  harness.run({ kind: 'price', coin: '@1', usd: 40, pin: true })
  harness.run({ kind: 'credit', user, coin: 'HYPE', units: dollars(10) })
  const order = { ...trigger(10_001, false, '30', '10', '36', 'sl'), r: false }
  assert.equal(place(harness, user, order), 'Placing trigger orders is not enabled on spot trading yet.')
  harness.run({ kind: 'settings', settings: { spotTriggers: true } })
  assert.deepEqual(place(harness, user, order), [{ resting: { oid: harness.orders(user).at(-1)?.oid } }])
  harness.run({ kind: 'price', coin: '@1', usd: 35, pin: true })
  assert.deepEqual(statuses(harness), ['filled'])
  assert.equal(harness.account(user).spot.get(2)?.total, 0n)
  harness.assertBalanced()
})

test('a flip pays the old position out and opens the new one at the same price', () => {
  const harness = funded(11)
  place(harness, user, limit(0, true, '101000', '0.02', 'Ioc'))
  place(harness, user, limit(0, false, '99000', '0.05', 'Ioc'))
  assert.equal(sizeOf(harness, 0), -3_000)
  const [opened, flipped] = harness.account(user).fills
  assert.deepEqual([opened?.dir, flipped?.dir], ['Open Long', 'Long > Short'])
  assert.equal(flipped?.closedPnl, dollars((99_992 - 100_008) * 0.02))
  harness.assertBalanced()
})

test('an isolated position loses its own margin and nothing else', () => {
  const harness = funded(12)
  harness.act(user, { type: 'updateLeverage', asset: 0, isCross: false, leverage: 20 })
  place(harness, user, limit(0, true, '101000', '0.1', 'Ioc'))
  const cash = harness.account(user).raw
  assert.ok(cash > dollars(9_490) && cash < dollars(9_500))
  price(harness, 'BTC', 60_000)
  assert.equal(sizeOf(harness, 0), 0)
  assert.ok(harness.account(user).raw >= cash - dollars(50))
  harness.assertBalanced()
})
