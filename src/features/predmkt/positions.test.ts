import assert from 'node:assert/strict'
import { test } from 'node:test'
import { profitOf } from './positions.ts'

const sums = { bought: '50000000', bought_cash: '20000000', sold: '0', sold_cash: '0' }
const none = { sharesUnits: 0n, payoutUnits: 0n }

test('what is left keeps its part of the cost, and a sale earns the rest', () => {
  assert.deepEqual(profitOf(sums, none), {
    leftUnits: 50_000_000n,
    costUnits: 20_000_000n,
    averageMicros: 400_000n,
    realizedUnits: 0n,
  })
  assert.deepEqual(profitOf({ ...sums, sold: '25000000', sold_cash: '15000000' }, none), {
    leftUnits: 25_000_000n,
    costUnits: 10_000_000n,
    averageMicros: 400_000n,
    realizedUnits: 5_000_000n,
  })
})

test('a redemption pays for all that is left, and a lost one costs all of it', () => {
  const won = profitOf(sums, { sharesUnits: 50_000_000n, payoutUnits: 50_000_000n })
  assert.deepEqual([won.leftUnits, won.costUnits, won.realizedUnits], [0n, 0n, 30_000_000n])
  const lost = profitOf(sums, { sharesUnits: 50_000_000n, payoutUnits: 0n })
  assert.deepEqual([lost.costUnits, lost.realizedUnits], [0n, -20_000_000n])
})

test('shares that came from elsewhere have no cost', () => {
  const sold = profitOf({ ...sums, sold: '60000000', sold_cash: '36000000' }, none)
  assert.deepEqual([sold.leftUnits, sold.costUnits, sold.realizedUnits], [0n, 0n, 16_000_000n])
})
