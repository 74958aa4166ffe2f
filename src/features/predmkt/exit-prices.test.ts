import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BookFacts, judgeProfit, judgeStop } from './exit-prices.ts'

const shares = (count: number): bigint => BigInt(count * 1_000_000)
const level = (priceMicros: bigint) => [{ priceMicros, sizeUnits: shares(1_000) }]
const bookAt = (bidMicros: bigint): BookFacts => ({
  tickMicros: 10_000n,
  minSizeUnits: shares(5),
  bids: level(bidMicros),
  asks: level(bidMicros + 20_000n),
  lastPriceMicros: null,
})
const book = bookAt(400_000n)

test('a stop-loss sells nothing to a bid far below the trigger and the price of the market', () => {
  const thin = (bid: bigint, lastPriceMicros: bigint | null): BookFacts => ({
    ...book,
    bids: level(bid),
    asks: level(450_000n),
    lastPriceMicros,
  })
  const stopAt = (seen: BookFacts) => judgeStop({ triggerMicros: 300_000n, sizeUnits: shares(100) }, seen)
  const sells = (priceMicros: bigint) => ({ type: 'sell', priceMicros })
  // Somebody has sold to the honest bids, the last of which was 0.28, and leaves a bid of their own.
  assert.deepEqual(stopAt(thin(10_000n, 280_000n)), { type: 'far' })
  assert.deepEqual(stopAt(thin(210_000n, 280_000n)), sells(210_000n))
  assert.deepEqual(stopAt(thin(210_000n, 400_000n)), { type: 'far' })
  assert.deepEqual(stopAt(thin(10_000n, null)), { type: 'far' })
  assert.deepEqual(stopAt(thin(60_000n, 80_000n)), sells(60_000n))
  assert.deepEqual(stopAt(thin(310_000n, 280_000n)), { type: 'not_reached' })
  assert.deepEqual(stopAt({ ...book, bids: [] }), { type: 'not_reached' })
  // A narrow book counts once it has as many shares as the exit on both sides.
  assert.deepEqual(stopAt({ ...bookAt(100_000n), lastPriceMicros: 400_000n }), sells(90_000n))
  const own = { ...bookAt(100_000n), lastPriceMicros: 400_000n }
  own.asks = [{ priceMicros: 120_000n, sizeUnits: shares(99) }]
  assert.deepEqual(stopAt(own), { type: 'far' })
})

test('a take-profit sells nothing to a bid far below the price of the market', () => {
  const bids = (bid: bigint): BookFacts => ({
    ...book,
    bids: level(bid),
    asks: [],
    lastPriceMicros: 600_000n,
  })
  const trigger = { triggerMicros: 10_000n }
  const sizeUnits = shares(100)
  const resting = (seen: BookFacts) => judgeProfit({ ...trigger, sizeUnits, rests: true }, seen)
  const watched = (seen: BookFacts) => judgeProfit({ ...trigger, sizeUnits, rests: false }, seen)
  assert.deepEqual(resting(bids(10_000n)), { type: 'not_reached' })
  assert.deepEqual(watched(bids(10_000n)), { type: 'not_reached' })
  assert.deepEqual(watched(bids(460_000n)), { type: 'sell', priceMicros: 450_000n })
  assert.deepEqual(resting({ ...bids(1n), lastPriceMicros: null }), {
    type: 'sell',
    priceMicros: 10_000n,
  })
})
