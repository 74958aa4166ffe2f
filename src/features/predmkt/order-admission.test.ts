import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { OutcomeQuote } from '#kernel/money/prediction-views.ts'
import { quoteNow } from './order-admission.ts'
import type { OrderTerms } from './order-request.ts'

const terms = {
  side: 'buy',
  timeInForce: 'fak',
  allInUnits: 1_020_000n,
  boundMicros: null,
  priceMicros: null,
} as OrderTerms

/** What is said of a purchase whose order names so much cash. */
const refusalOf = async (orderCashUnits: bigint, { isComplete = true } = {}): Promise<unknown> => {
  const quote = { sizeUnits: 1n, worstPriceMicros: 1n, isComplete, orderCashUnits } as OutcomeQuote
  const deps = { venue: { quote: async () => quote } } as unknown as Parameters<typeof quoteNow>[0]
  return quoteNow(deps, terms).then(
    () => undefined,
    (fault: unknown) =>
      fault instanceof Fault && [fault.code, fault.issues[0]?.path[0], fault.issues[0]?.ctx?.minimum],
  )
}

test('a purchase at market price is at least a dollar without its fee', async () => {
  assert.deepEqual(await refusalOf(990_000n), ['validation', 'amount_usd', '1'])
  assert.equal(await refusalOf(1_000_000n), undefined)
  // The dollars would be enough, and the book has too little.
  assert.deepEqual(await refusalOf(990_000n, { isComplete: false }), [
    'insufficient_liquidity',
    undefined,
    undefined,
  ])
})
