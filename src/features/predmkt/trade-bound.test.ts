import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Book } from '#kernel/money/prediction-views.ts'
import { boundPurchase, boundSale, marketPriceMicros } from './trade-bound.ts'

const sizeUnits = 200_000_000n
const level = (priceMicros: bigint, units: bigint) => ({ priceMicros, sizeUnits: units })
type Around = { last?: bigint; bidUnits?: bigint; askUnits?: bigint }
const bookOf = (
  bid: bigint | null,
  ask: bigint | null,
  { last, bidUnits = sizeUnits, askUnits = sizeUnits }: Around = {},
): Book => ({
  venue: 'polymarket',
  marketId: '0x1',
  outcomeId: '1',
  bids: bid === null ? [] : [level(bid, bidUnits)],
  asks: ask === null ? [] : [level(ask, askUnits)],
  tickMicros: 1_000n,
  minSizeUnits: 5_000_000n,
  isNegRisk: false,
  lastPriceMicros: last ?? null,
  hash: '',
  at: new Date(0),
})
const nothing = { dayMicros: [], costMicros: null }
const priceOf = (side: 'buy' | 'sell', book: Book, known = {}) =>
  marketPriceMicros(book, { side, sizeUnits }, { ...nothing, ...known })

test('a narrow book with as many shares as the order on both sides shows its middle', () => {
  for (const side of ['buy', 'sell'] as const)
    assert.equal(priceOf(side, bookOf(400_000n, 420_000n, { last: 900_000n })), 410_000n)
})

test('an order that is larger than a narrow book goes by what else is known', () => {
  const last = 300_000n
  for (const around of [{ bidUnits: sizeUnits - 1n }, { askUnits: sizeUnits - 1n }])
    assert.equal(priceOf('sell', bookOf(10_000n, 20_000n, { last, ...around })), last)
})

test('without the book the last price and the median of the day decide, against the order', () => {
  const wide = bookOf(1_000n, 420_000n, { last: 100_000n })
  const dayMicros = [180_000n, 320_000n, 240_000n]
  assert.equal(priceOf('sell', wide, { dayMicros }), 240_000n)
  assert.equal(priceOf('sell', bookOf(1_000n, null), { costMicros: 500_000n }), 500_000n)
  assert.equal(priceOf('buy', wide, { dayMicros, costMicros: 50_000n }), 100_000n)
  assert.equal(priceOf('buy', bookOf(null, 990_000n), { dayMicros }), 240_000n)
  assert.equal(priceOf('sell', bookOf(1_000n, null)), 1_000_000n)
  assert.equal(priceOf('buy', bookOf(null, 990_000n)), 1_000n)
})

test('sales of one token at three quarters of the last trade do not move their own bound within a day', () => {
  let last = 400_000n
  const dayMicros = [last]
  for (let sale = 0; sale < 10; sale += 1) {
    const book = bookOf(1_000n, null, { last })
    const { priceMicros } = boundSale(
      { priceMicros: null, sizeUnits },
      book,
      priceOf('sell', book, { dayMicros }),
    )
    assert.equal(priceMicros, 300_000n)
    last = priceMicros
  }
})

const grid = bookOf(null, null)

test('a sale near the price is an exit, and one without a price is bounded there, on the grid', () => {
  const exit = { priceMicros: 308_000n, countedMicros: 0n }
  assert.deepEqual(boundSale({ priceMicros: null, sizeUnits }, grid, 410_000n), exit)
  assert.deepEqual(
    boundSale({ priceMicros: null, sizeUnits }, { tickMicros: 10_000n }, 410_000n).priceMicros,
    310_000n,
  )
  for (const priceMicros of [308_000n, 400_000n, 990_000n])
    assert.deepEqual(boundSale({ priceMicros, sizeUnits }, grid, 410_000n), {
      priceMicros,
      countedMicros: 0n,
    })
})

test('a sale far below the price counts at the price, and says what it loses', () => {
  assert.deepEqual(boundSale({ priceMicros: 1_000n, sizeUnits }, grid, 500_000n), {
    priceMicros: 1_000n,
    countedMicros: 100_000_000n,
    acceptedLossBps: 9_980,
  })
})

test('a share of a few ticks sells at the next tick, and never below the first one', () => {
  assert.equal(boundSale({ priceMicros: 1_000n, sizeUnits }, grid, 2_000n).countedMicros, 0n)
  assert.equal(boundSale({ priceMicros: null, sizeUnits }, grid, 1_000n).priceMicros, 1_000n)
})

test('a purchase without a price is bounded near the price, and one far above it says what it loses', () => {
  assert.deepEqual(boundPurchase({ priceMicros: null }, grid, 410_000n), { priceMicros: 512_000n })
  assert.deepEqual(boundPurchase({ priceMicros: 512_000n }, grid, 410_000n), { priceMicros: 512_000n })
  assert.deepEqual(boundPurchase({ priceMicros: 990_000n }, grid, 10_000n), {
    priceMicros: 990_000n,
    acceptedLossBps: 9_898,
  })
  assert.deepEqual(boundPurchase({ priceMicros: null }, grid, 2_000n), { priceMicros: 3_000n })
  assert.deepEqual(boundPurchase({ priceMicros: null }, grid, 900_000n), { priceMicros: 999_000n })
})
