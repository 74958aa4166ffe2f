import assert from 'node:assert/strict'
import { test } from 'node:test'
import { median } from '#world/hyperliquid/mark.ts'
import { type Perp, perps } from '#world/hyperliquid/markets.ts'
import { accountOf, backstopAddress, bookOf, stateOf } from '#world/hyperliquid/venue.ts'
import { dollars, limit, type Machine, openMachine, place, take, trigger, userAt } from './venue/machine.ts'

const user = userAt(0x51)
const other = userAt(0x52)
const btc = perps[0] as Perp

const funded = (seed: number, usd = 10_000, who = user): Machine => {
  const machine = openMachine(seed)
  machine.run({ kind: 'price', coin: 'BTC', usd: 100_000, pin: true })
  machine.run({ kind: 'credit', user: who, coin: 'perp', units: dollars(usd) })
  return machine
}

const price = (machine: Machine, coin: string, usd: number, afterMs = 0) =>
  machine.run({ kind: 'price', coin, usd, pin: true }, afterMs)

const statuses = (machine: Machine, who = user) => machine.orders(who).map(({ status }) => status)
const sizeOf = (machine: Machine, asset: number, who = user) =>
  machine.account(who).positions.get(asset)?.size ?? 0

test('a large position is liquidated by a fifth, and whole when it must be again within half a minute', () => {
  const machine = openMachine(1)
  const back = btc.startUsd * 0.9832
  machine.run({ kind: 'credit', user, coin: 'perp', units: dollars(20_000) })
  machine.act(user, { type: 'updateLeverage', asset: 0, isCross: true, leverage: 40 })
  take(machine, user, btc, true, 700_000)
  const before = sizeOf(machine, 0)
  price(machine, 'BTC', back)
  const left = sizeOf(machine, 0)
  assert.ok(left > before * 0.79 && left <= before * 0.8 + 1, `${left} of ${before}`)
  price(machine, 'BTC', btc.startUsd * 0.9785, 31_000)
  const second = sizeOf(machine, 0)
  assert.ok(second > left * 0.79 && second <= left * 0.8 + 1, `${second} of ${left}`)
  price(machine, 'BTC', btc.startUsd * 0.9735, 10_000)
  assert.equal(sizeOf(machine, 0), 0)
  assert.ok(machine.account(user).raw > 0n)
  machine.balanced()
})

test('what cannot be sold in time is taken over with its margin, and nobody ends below zero', () => {
  const machine = openMachine(2)
  machine.run({ kind: 'credit', user, coin: 'perp', units: dollars(10_000) })
  machine.act(user, { type: 'updateLeverage', asset: 0, isCross: true, leverage: 40 })
  take(machine, user, btc, false, 380_000)
  assert.ok(sizeOf(machine, 0) < 0)
  price(machine, 'BTC', btc.startUsd * 1.4)
  assert.equal(sizeOf(machine, 0), 0)
  assert.equal(machine.account(user).raw, 0n)
  machine.balanced()
})

test('when the backstop is empty, the biggest winners give up their gain at the price before the move', () => {
  const machine = funded(3, 50_000)
  machine.run({ kind: 'credit', user: other, coin: 'perp', units: dollars(500_000) })
  for (const who of [user, other])
    machine.act(who, { type: 'updateLeverage', asset: 1, isCross: true, leverage: 25 })
  price(machine, 'ETH', 3_000)
  place(machine, other, limit(1, false, '3000', '400'))
  place(machine, user, limit(1, true, '3000', '300', 'Ioc'))
  assert.equal(sizeOf(machine, 1), 3_000_000)
  const backstop = accountOf(machine.venue, backstopAddress)
  machine.venue.state.flows.perp -= backstop.raw
  backstop.raw = 0n
  assert.equal(sizeOf(machine, 1, other), -3_000_000)
  const before = machine.account(other).raw
  price(machine, 'ETH', 1_500)
  assert.equal(sizeOf(machine, 1), 0)
  assert.equal(sizeOf(machine, 1, other), 0)
  assert.equal(machine.account(other).raw, before - dollars(300 * 3_000))
  for (const who of [user, other]) assert.equal(machine.account(who).fills.at(-1)?.dir, 'Auto-Deleveraging')
  machine.balanced()
})

test('a resting order that nobody can pay for any more is taken off when it is hit', () => {
  const machine = funded(4, 1_000)
  machine.act(user, { type: 'updateLeverage', asset: 0, isCross: true, leverage: 10 })
  machine.act(user, { type: 'updateLeverage', asset: 1, isCross: true, leverage: 10 })
  price(machine, 'ETH', 3_000)
  place(machine, user, limit(0, true, '99000', '0.09'), limit(1, true, '2970', '3'))
  price(machine, 'BTC', 98_900)
  assert.equal(sizeOf(machine, 0), 9_000)
  price(machine, 'ETH', 2_960)
  assert.equal(sizeOf(machine, 1), 0)
  assert.deepEqual(statuses(machine), ['filled', 'marginCanceled'])
  machine.balanced()
})

test('the mark is the median of oracle with basis, book, and smoothed book when nobody holds it', () => {
  const machine = funded(5)
  machine.run({ kind: 'unpin', coin: 'BTC' })
  place(machine, user, limit(0, true, '100004', '0.1', 'Alo'))
  for (let i = 0; i < 20; i += 1) machine.run({ kind: 'tick' }, 3_000)
  const state = stateOf(machine.venue, 0)
  const book = bookOf(machine.venue, 0)
  const [bid = 0, ask = 0] = [book.best(true), book.best(false)]
  const inside = median([bid, ask, state.last])
  const withBasis = state.oracle + state.basis.sum / state.basis.weight
  const smooth = state.smooth.sum / state.smooth.weight
  assert.ok(Math.abs(state.mark - median([withBasis, inside, smooth])) <= 10_000_000)
  assert.ok(state.basis.sum / state.basis.weight > 0, 'a high bid leaves a basis')
})

test('changing a leg of a bracket keeps the pair: the new stop still cancels the target', () => {
  const machine = funded(6)
  const said = machine.act(user, {
    type: 'order',
    orders: [
      limit(0, true, '101000', '0.02', 'Ioc'),
      trigger(0, false, '110000', '0.02', '110000', 'tp'),
      trigger(0, false, '80000', '0.02', '95000', 'sl'),
    ],
    grouping: 'normalTpsl',
  }) as unknown[]
  assert.deepEqual(said.slice(1), ['waitingForTrigger', 'waitingForTrigger'])
  const stop = machine.orders(user)[2]
  machine.act(user, {
    type: 'modify',
    oid: stop?.oid,
    order: trigger(0, false, '80000', '0.02', '97000', 'sl'),
  })
  price(machine, 'BTC', 96_900)
  assert.equal(sizeOf(machine, 0), 0)
  assert.deepEqual(statuses(machine), ['filled', 'siblingFilledCanceled', 'canceled', 'filled'])
})

test('changing a resting parent takes its waiting children along', () => {
  const machine = funded(7)
  machine.act(user, {
    type: 'order',
    orders: [limit(0, true, '95000', '0.02'), trigger(0, false, '80000', '0.02', '90000', 'sl')],
    grouping: 'normalTpsl',
  })
  const parent = machine.orders(user)[0]
  machine.act(user, { type: 'modify', oid: parent?.oid, order: limit(0, true, '96000', '0.02') })
  price(machine, 'BTC', 95_900)
  assert.deepEqual(
    machine.orders(user).map(({ status, phase }) => `${status} ${phase}`),
    ['canceled done', 'open armed', 'filled done'],
  )
  price(machine, 'BTC', 89_900)
  assert.equal(sizeOf(machine, 0), 0)
})

test('a market entry that only partly fills leaves a position and no stop, and says so', () => {
  const machine = funded(8, 10_000_000)
  machine.act(user, { type: 'updateLeverage', asset: 0, isCross: true, leverage: 10 })
  const said = machine.act(user, {
    type: 'order',
    orders: [
      limit(0, true, '100012', '2', 'Ioc'),
      trigger(0, false, '110000', '2', '110000', 'tp'),
      trigger(0, false, '80000', '2', '95000', 'sl'),
    ],
    grouping: 'normalTpsl',
  }) as [{ filled: { totalSz: string } }, { error: string }, { error: string }]
  assert.ok(Number(said[0].filled.totalSz) > 0 && Number(said[0].filled.totalSz) < 2)
  assert.ok(said[1].error && said[2].error)
  assert.ok(sizeOf(machine, 0) > 0)
  assert.equal(machine.account(user).open.size, 0)
})

test('a bracket with one impossible leg opens the position and refuses only that leg', () => {
  const machine = funded(9)
  const said = machine.act(user, {
    type: 'order',
    orders: [
      limit(0, true, '101000', '0.02', 'Ioc'),
      trigger(0, false, '99000', '0.02', '99000', 'tp'),
      trigger(0, false, '80000', '0.02', '95000', 'sl'),
    ],
    grouping: 'normalTpsl',
  }) as [{ filled: unknown }, { error: string }, string]
  assert.ok(said[0].filled)
  assert.equal(said[1].error, 'Invalid TP/SL price. asset=0')
  assert.equal(said[2], 'waitingForTrigger')
})

test('a trigger on its own rests under its order id, with its client id, and is cancelled by it', () => {
  const machine = funded(13)
  place(machine, user, limit(0, true, '101000', '0.02', 'Ioc'))
  const c = `0x${'7c'.repeat(16)}`
  const stop = { ...trigger(0, false, '80000', '0.02', '95000', 'sl'), c }
  const [said] = place(machine, user, stop) as [{ resting: { oid: number; cloid: string } }]
  const oid = machine.orders(user).at(-1)?.oid
  assert.deepEqual(said, { resting: { oid, cloid: c } })
  assert.deepEqual(machine.act(user, { type: 'cancel', cancels: [{ a: 0, o: said.resting.oid }] }), [
    'success',
  ])
  const pair = machine.act(user, {
    type: 'order',
    orders: [
      trigger(0, false, '110000', '0', '110000', 'tp'),
      trigger(0, false, '80000', '0', '95000', 'sl'),
    ],
    grouping: 'positionTpsl',
  })
  assert.deepEqual(pair, ['waitingForTrigger', 'waitingForTrigger'])
})

test('spot triggers are refused unless the venue is told to take them', () => {
  const machine = funded(10)
  machine.run({ kind: 'price', coin: '@1', usd: 40, pin: true })
  machine.run({ kind: 'credit', user, coin: 'HYPE', units: dollars(10) })
  const order = { ...trigger(10_001, false, '30', '10', '36', 'sl'), r: false }
  assert.equal(place(machine, user, order), 'Placing trigger orders is not enabled on spot trading yet.')
  machine.run({ kind: 'settings', settings: { spotTriggers: true } })
  assert.deepEqual(place(machine, user, order), [{ resting: { oid: machine.orders(user).at(-1)?.oid } }])
  machine.run({ kind: 'price', coin: '@1', usd: 35, pin: true })
  assert.deepEqual(statuses(machine), ['filled'])
  assert.equal(machine.account(user).spot.get(2)?.total, 0n)
  machine.balanced()
})

test('a flip pays the old position out and opens the new one at the same price', () => {
  const machine = funded(11)
  place(machine, user, limit(0, true, '101000', '0.02', 'Ioc'))
  place(machine, user, limit(0, false, '99000', '0.05', 'Ioc'))
  assert.equal(sizeOf(machine, 0), -3_000)
  const [opened, flipped] = machine.account(user).fills
  assert.deepEqual([opened?.dir, flipped?.dir], ['Open Long', 'Long > Short'])
  assert.equal(flipped?.closedPnl, dollars((99_992 - 100_008) * 0.02))
  machine.balanced()
})

test('an isolated position loses its own margin and nothing else', () => {
  const machine = funded(12)
  machine.act(user, { type: 'updateLeverage', asset: 0, isCross: false, leverage: 20 })
  place(machine, user, limit(0, true, '101000', '0.1', 'Ioc'))
  const cash = machine.account(user).raw
  assert.ok(cash > dollars(9_490) && cash < dollars(9_500))
  price(machine, 'BTC', 60_000)
  assert.equal(sizeOf(machine, 0), 0)
  assert.ok(machine.account(user).raw >= cash - dollars(50))
  machine.balanced()
})
