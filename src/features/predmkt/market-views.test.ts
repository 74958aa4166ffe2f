import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quoteRequestOf } from './market-views.ts'

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
