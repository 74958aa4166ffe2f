import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { afterFill, afterRelease, type Fill, noShares } from './held-shares.ts'

const buy = (sizeUnits: bigint, cashUnits: bigint, feeUnits = 0n): Fill => ({
  side: 'buy',
  sizeUnits,
  cashUnits,
  feeUnits,
})
const sell = (sizeUnits: bigint, cashUnits: bigint, feeUnits = 0n): Fill => ({
  ...buy(sizeUnits, cashUnits, feeUnits),
  side: 'sell',
})

test('what is left keeps its part of the cost, and a sale earns the rest', () => {
  const bought = afterFill(noShares, buy(50_000_000n, 19_000_000n, 1_000_000n))
  assert.deepEqual(bought, { units: 50_000_000n, costUnits: 20_000_000n, realizedUnits: 0n })
  assert.deepEqual(afterFill(bought, sell(25_000_000n, 15_500_000n, 500_000n)), {
    units: 25_000_000n,
    costUnits: 10_000_000n,
    realizedUnits: 5_000_000n,
  })
})

test('a later purchase changes nothing of what an earlier sale has earned', () => {
  const sold = afterFill(afterFill(noShares, buy(10n, 4n)), sell(10n, 5n))
  assert.deepEqual(sold, { units: 0n, costUnits: 0n, realizedUnits: 1n })
  assert.deepEqual(afterFill(sold, buy(10n, 6n)), { units: 10n, costUnits: 6n, realizedUnits: 1n })
})

test('a redemption pays for all that is left, and a lost one costs all of it', () => {
  const held = { units: 50_000_000n, costUnits: 20_000_000n, realizedUnits: 0n }
  assert.deepEqual(afterRelease(held, 50_000_000n, 50_000_000n), { ...noShares, realizedUnits: 30_000_000n })
  assert.deepEqual(afterRelease(held, 50_000_000n, 0n), { ...noShares, realizedUnits: -20_000_000n })
})

test('shares that came from elsewhere have no cost', () => {
  const held = { units: 50_000_000n, costUnits: 20_000_000n, realizedUnits: 0n }
  assert.deepEqual(afterFill(held, sell(60_000_000n, 36_000_000n)), {
    ...noShares,
    realizedUnits: 16_000_000n,
  })
})

test('cost and profit are what was paid and received, however the fills follow each other', () => {
  const amount = fc.bigInt({ min: 0n, max: 10n ** 12n })
  const fill = fc.record({
    side: fc.constantFrom('buy' as const, 'sell' as const),
    sizeUnits: fc.bigInt({ min: 1n, max: 10n ** 12n }),
    cashUnits: amount,
    feeUnits: amount,
  })
  fc.assert(
    fc.property(fc.array(fill, { maxLength: 50 }), (fills) => {
      const held = fills.reduce(afterFill, noShares)
      const flow = fills.reduce(
        (sum, { side, cashUnits, feeUnits }) =>
          side === 'buy' ? sum - cashUnits - feeUnits : sum + cashUnits - feeUnits,
        0n,
      )
      assert.equal(held.realizedUnits - held.costUnits, flow)
      assert.ok(held.units >= 0n && held.costUnits >= 0n)
    }),
  )
})
