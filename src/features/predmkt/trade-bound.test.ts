import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Book } from '#kernel/money/prediction-views.ts'
import { boundSale, marketPriceMicros } from './sale-bound.ts'

const level = (priceMicros: bigint) => ({ priceMicros, sizeUnits: 100_000_000n })
const bookOf = (bid: bigint | null, ask: bigint | null, lastPriceMicros: bigint | null = null): Book => ({
  venue: 'polymarket',
  marketId: '0x1',
  outcomeId: '1',
  bids: bid === null ? [] : [level(bid)],
  asks: ask === null ? [] : [level(ask)],
  tickMicros: 1_000n,
  minSizeUnits: 5_000_000n,
  isNegRisk: false,
  lastPriceMicros,
  hash: '',
  at: new Date(0),
})
const sizeUnits = 200_000_000n

test('a narrow book shows its middle, a wide one the last trade, and an unknown price is a whole dollar', () => {
  assert.equal(marketPriceMicros(bookOf(400_000n, 420_000n, 900_000n)), 410_000n)
  assert.equal(marketPriceMicros(bookOf(1_000n, 420_000n, 300_000n)), 300_000n)
  assert.equal(marketPriceMicros(bookOf(1_000n, null, 300_000n)), 300_000n)
  assert.equal(marketPriceMicros(bookOf(1_000n, null)), 1_000_000n)
})

test('a sale near the price is an exit, and one without a price is bounded there', () => {
  const book = bookOf(400_000n, 420_000n)
  assert.deepEqual(boundSale({ priceMicros: null, sizeUnits }, book), {
    priceMicros: 307_500n,
    countedMicros: 0n,
  })
  for (const priceMicros of [307_500n, 400_000n, 990_000n])
    assert.deepEqual(boundSale({ priceMicros, sizeUnits }, book), { priceMicros, countedMicros: 0n })
})

test('a sale far below the price counts at the price, and says what it loses', () => {
  const book = bookOf(1_000n, 990_000n, 500_000n)
  assert.deepEqual(boundSale({ priceMicros: 1_000n, sizeUnits }, book), {
    priceMicros: 1_000n,
    countedMicros: 100_000_000n,
    acceptedLossBps: 9_980,
  })
})

test('a share of a few ticks sells at the next tick, and never below the first one', () => {
  assert.equal(boundSale({ priceMicros: 2_000n, sizeUnits }, bookOf(2_000n, 3_000n)).countedMicros, 0n)
  assert.equal(boundSale({ priceMicros: null, sizeUnits }, bookOf(1_000n, 2_000n)).priceMicros, 1_000n)
})
