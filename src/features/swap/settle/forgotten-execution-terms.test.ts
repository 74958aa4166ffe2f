import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SwapTaskData } from '#features/swap/task-data.ts'
import { foundTerms } from './forgotten-execution-terms.ts'
import { soldFor } from './swap-fill.ts'

const planned = {
  amount_in: '400000000',
  amount_out_min: '398000000',
  usd_micros: '400000000',
  settled_by: 'status',
  quote: { amount_in: '400000000', amount_out: '400000000', amount_out_min: '398000000', fees: [] },
} as unknown as SwapTaskData

test('what an earlier execution brought is judged by its value, and not by the minimum of a later quote', () => {
  const terms = foundTerms(planned, 400_000_000n)
  assert.deepEqual(terms, {
    amount_in: '400000000',
    amount_out_min: '300000000',
    usd_micros: '400000000',
    quote: { ...planned.quote, amount_out_min: '300000000' },
  })
  assert.equal(soldFor({ ...planned, ...terms }, 390_000_000n), 400_000_000n)
})

test('the terms of an earlier execution are of the amount that it sold', () => {
  const { amount_out_min, usd_micros, quote } = foundTerms(planned, 100_000_000n)
  assert.deepEqual([amount_out_min, usd_micros, quote.amount_out], ['75000000', '100000000', '100000000'])
  // A tenth of a dollar may lose half of its value, and a later quote may accept more than that.
  assert.equal(foundTerms(planned, 100_000n).amount_out_min, '50000')
  const wide = { ...planned, amount_out_min: '200000000' }
  assert.equal(foundTerms(wide, 100_000_000n).amount_out_min, '50000000')
})
