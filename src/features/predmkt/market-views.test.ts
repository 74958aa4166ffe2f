import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { quoteRequestOf, stepMinutesOf } from './market-views.ts'

test('a quote asks the book for its amount, within its worst price', () => {
  assert.deepEqual(
    quoteRequestOf({ outcome_id: '7', side: 'BUY', amount_usd: '12.5', worst_price: '0.62' }),
    {
      outcomeId: '7',
      spend: { type: 'all_in', cashUnits: 12_500_000n },
      worstPriceMicros: 620_000n,
    },
  )
  assert.deepEqual(quoteRequestOf({ token_id: '7', side: 'SELL', amount_shares: '3' }), {
    outcomeId: '7',
    spend: { type: 'sell', sizeUnits: 3_000_000n },
    worstPriceMicros: null,
  })
})

test('a price history has at most 10,000 prices', () => {
  const steps = (['1h', '1d', '1w', '1m', 'max'] as const).map((window) => stepMinutesOf(window, undefined))
  assert.deepEqual(steps, [10, 10, 10, 10, 53])
  assert.deepEqual([stepMinutesOf('1d', 1), stepMinutesOf('1m', 5), stepMinutesOf('max', 60)], [1, 5, 60])
  for (const window of ['1w', '1m', 'max'] as const)
    assert.throws(
      () => stepMinutesOf(window, 1),
      (error) => error instanceof Fault && error.code === 'validation',
    )
})
