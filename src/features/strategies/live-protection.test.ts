import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OpenPosition } from '#market/strategies/account.ts'
import { needOf } from './live-protection.ts'
import type { OwnOrder } from './live-records.ts'

const position: OpenPosition = {
  isLong: true,
  sizeUnits: 1_000n,
  costMicros: 1_000_000_000n,
  leverage: 1,
  isCross: false,
  openedMs: 0,
  targetFromMs: 0,
  feesMicros: 0n,
  fundingMicros: 0n,
  stop: { priceUnits: 1n, isMarket: true },
}
const order = (change: Partial<OwnOrder>): OwnOrder => ({
  cloid: '0x1',
  task_id: 'entry',
  leg: 'sl',
  asset: 'BTC',
  is_buy: false,
  size: '0.01',
  price: '90000',
  trigger_price: '98000',
  reduce_only: true,
  at: new Date(0),
  ...change,
})
const own = (size: string) => ({ isLong: true, size, isSettled: true })
const stop = order({})
const target = order({ leg: 'tp', trigger_price: '110000' })
const entry = order({ leg: 'entry', is_buy: true, trigger_price: null, reduce_only: false })
const stopped = { mayEnter: false }
const needs = (given: Partial<Parameters<typeof needOf>[0]>, { mayEnter } = { mayEnter: true }) => {
  const need = needOf(
    { asset: 'BTC', position, own: own('0.01'), orders: [stop, target], ...given },
    { mayEnter },
  )
  return need && { isResting: need.isResting, isSurplus: need.isSurplus, isUnprotected: need.isUnprotected }
}

test('a position with its stop and its target needs nothing', () => {
  assert.equal(needs({}), undefined)
  assert.equal(needs({}, stopped), undefined)
})

test('a stop that is missing or too small is placed, and none where the strategy has none', () => {
  assert.equal(needs({ orders: [target] })?.isUnprotected, true)
  assert.equal(needs({ orders: [order({ size: '0.004' }), target] })?.isUnprotected, true)
  const { stop: _stop, ...bare } = position
  assert.equal(needs({ orders: [], position: bare }), undefined)
})

test('exits beyond the part are cancelled, unless an order may still enlarge or reduce the part', () => {
  assert.equal(needs({ own: own('0.004') })?.isSurplus, true)
  assert.equal(needs({ own: undefined, position: undefined })?.isSurplus, true)
  assert.equal(needs({ own: { ...own('0.004'), isSettled: false } }), undefined)
  assert.equal(needs({ own: undefined, position: undefined, orders: [entry, stop, target] }), undefined)
})

test('an entry that rests and is filled in part needs a stop for that part, because its own stop waits for the rest', () => {
  const part = { own: own('0.004'), orders: [entry, stop, target] }
  assert.deepEqual(needs(part), { isResting: false, isSurplus: false, isUnprotected: true })
  const placed = order({ task_id: 'stop', size: '0.004' })
  assert.equal(needs({ ...part, orders: [...part.orders, placed] }), undefined)
  assert.equal(needs({ orders: [stop, target, { ...entry, task_id: 'another entry' }] }), undefined)
})

test('nothing rests to enter once the strategy may not enter', () => {
  const resting = { own: undefined, position: undefined, orders: [entry, stop, target] }
  assert.deepEqual(needs(resting, stopped), { isResting: true, isSurplus: false, isUnprotected: false })
})
