import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { OrderTerms } from '#kernel/money/prediction-venue.ts'
import { orderAmounts } from './order-amounts.ts'

const cents = { tickMicros: 10_000n, minSizeUnits: 5_000_000n }
const mills = { tickMicros: 1_000n, minSizeUnits: 5_000_000n }

const reasonOf = (terms: OrderTerms, grid = cents): unknown => {
  try {
    orderAmounts(terms, grid)
  } catch (error) {
    assert.ok(error instanceof Fault)
    return error.extras.reason ?? error.code
  }
  return undefined
}

test('a limit gives and takes exact amounts, with shares in hundredths', () => {
  const terms = { type: 'limit', side: 'buy', priceMicros: 620_000n, sizeUnits: 10_009_999n } as const
  assert.deepEqual(orderAmounts(terms, cents), {
    makerUnits: 6_200_000n,
    takerUnits: 10_000_000n,
    priceMicros: 620_000n,
    sizeUnits: 10_000_000n,
  })
  const sale = orderAmounts({ ...terms, side: 'sell' }, cents)
  assert.deepEqual([sale.makerUnits, sale.takerUnits], [10_000_000n, 6_200_000n])
})

test('a market buy names whole cents, and no more shares than they buy at the worst price', () => {
  const terms = { type: 'market', side: 'buy', cashUnits: 20_009_999n, worstPriceMicros: 630_000n } as const
  const { makerUnits, takerUnits } = orderAmounts(terms, cents)
  assert.deepEqual([makerUnits, takerUnits], [20_000_000n, 31_746_000n])
  assert.ok(makerUnits * 1_000_000n >= takerUnits * 630_000n)
  assert.equal(orderAmounts({ ...terms, worstPriceMicros: 126_000n }, mills).takerUnits, 158_730_150n)
})

test('a price beside the grid of the market is refused', () => {
  const limit = (priceMicros: bigint) =>
    ({ type: 'limit', side: 'buy', priceMicros, sizeUnits: 10_000_000n }) as const
  assert.equal(reasonOf(limit(625_000n)), 'tick_invalid')
  assert.equal(reasonOf(limit(625_000n), mills), undefined)
  for (const price of [0n, -10_000n, 1_000_000n, 999_000n])
    assert.equal(reasonOf(limit(price)), 'price_invalid')
  assert.equal(reasonOf(limit(990_000n)), undefined)
  assert.equal(reasonOf(limit(999_000n), mills), undefined)
  assert.equal(reasonOf(limit(500_000n), { ...cents, tickMicros: 20_000n }), 'upstream_changed')
})

test('the bound of a market order is put on a grid that has become coarser, and never gets worse', () => {
  const terms = { type: 'market', cashUnits: 20_000_000n, sizeUnits: 20_000_000n } as const
  const boundAt = (side: 'buy' | 'sell', worstPriceMicros: bigint) =>
    orderAmounts({ ...terms, side, worstPriceMicros }, cents).priceMicros
  assert.deepEqual([boundAt('buy', 625_000n), boundAt('sell', 625_000n)], [620_000n, 630_000n])
  assert.deepEqual([boundAt('buy', 620_000n), boundAt('sell', 620_000n)], [620_000n, 620_000n])
  assert.throws(() => boundAt('buy', 9_000n), Fault)
})

test('an order below the minimum of the market is refused', () => {
  const limit = { type: 'limit', side: 'sell', priceMicros: 500_000n, sizeUnits: 4_999_999n } as const
  assert.equal(reasonOf(limit), 'below_minimum')
  assert.equal(reasonOf({ ...limit, sizeUnits: 5_000_000n }), undefined)
  // A sale of what is left has no minimum but a hundredth of a share.
  const sale = { type: 'market', side: 'sell', sizeUnits: 10_000n, worstPriceMicros: 500_000n } as const
  assert.equal(reasonOf(sale), undefined)
  assert.equal(reasonOf({ ...sale, sizeUnits: 9_999n }), 'below_minimum')
  const buy = { type: 'market', side: 'buy', cashUnits: 9_999n, worstPriceMicros: 500_000n } as const
  assert.equal(reasonOf(buy), 'below_minimum')
})
