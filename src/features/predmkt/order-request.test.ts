import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { assertOnGrid, type OrderTerms } from './order-request.ts'

const market = { tickMicros: 0n, minSizeUnits: 0n } as PredictionMarket
const terms: OrderTerms = {
  outcomeId: '1',
  side: 'buy',
  timeInForce: 'gtc',
  postOnly: false,
  expiresAt: null,
  priceMicros: 500_000n,
  boundMicros: null,
  sizeUnits: 5_000_000n,
  allInUnits: null,
  maxFeeUnits: null,
}

test('a market without a readable tick takes no order with a price, and no purchase', () => {
  const isNamed = (error: unknown) => error instanceof Fault && error.code === 'upstream_changed'
  for (const change of [{}, { side: 'sell' }, { timeInForce: 'fok', priceMicros: null }] as const)
    assert.throws(() => assertOnGrid({ ...terms, ...change }, market), isNamed)
  assertOnGrid({ ...terms, side: 'sell', timeInForce: 'fok', priceMicros: null }, market)
  assertOnGrid(terms, { ...market, tickMicros: 10_000n })
})

test('a sale at market price has at least the shares that the venue counts', () => {
  const sale = { ...terms, side: 'sell', timeInForce: 'fak', priceMicros: null } as const
  const isMinimum = (error: unknown) =>
    error instanceof Fault &&
    error.issues[0]?.path[0] === 'amount_shares' &&
    error.issues[0].ctx?.minimum === '0.01'
  assert.throws(() => assertOnGrid({ ...sale, sizeUnits: 9_999n }, market), isMinimum)
  assertOnGrid({ ...sale, sizeUnits: 10_000n }, market)
})
