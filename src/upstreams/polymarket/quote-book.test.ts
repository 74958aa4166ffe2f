import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Book, BookLevel } from '#kernel/money/prediction-views.ts'
import { quoteBook } from './quote-book.ts'
import { takerFeeUnits } from './taker-fee.ts'

const unit = 1_000_000n
const level = (cents: number, count: number): BookLevel => ({
  priceMicros: BigInt(cents) * 10_000n,
  sizeUnits: BigInt(count) * unit,
})
const book: Book = {
  venue: 'polymarket',
  marketId: '0x1',
  outcomeId: '1',
  asks: [level(50, 10), level(60, 10), level(70, 100)],
  bids: [level(40, 10), level(30, 10)],
  tickMicros: 10_000n,
  minSizeUnits: 5n * unit,
  isNegRisk: false,
  lastPriceMicros: null,
  hash: 'h',
  at: new Date(0),
}
const fee = { rate: '0.04', exponent: '1' }

test('a purchase by dollars takes the best levels first', () => {
  const quote = quoteBook(book, null, { type: 'all_in', cashUnits: 8n * unit })
  // 10 for 5 dollars, and 5 for 3.
  assert.deepEqual(
    [
      quote.sizeUnits,
      quote.cashUnits,
      quote.orderCashUnits,
      quote.feeUnits,
      quote.worstPriceMicros,
      quote.isComplete,
    ],
    [15n * unit, 8n * unit, 8n * unit, 0n, 600_000n, true],
  )
  assert.equal(quote.averagePriceMicros, 533_333n)
  assert.equal(quote.payoutUnits, 15n * unit)
})

test('the dollars of a purchase include the fee, as far as whole cents go', () => {
  for (const cents of [1n, 99n, 500n, 777n, 1_234n, 5_001n]) {
    const cashUnits = cents * 10_000n
    const quote = quoteBook(book, fee, { type: 'all_in', cashUnits })
    assert.ok(
      quote.feeUnits <= quote.maxFeeUnits && quote.orderCashUnits + quote.maxFeeUnits <= cashUnits,
      String(cents),
    )
    // One cent more, with its highest fee, would cost more than was allowed.
    const next = quote.orderCashUnits + 10_000n
    assert.ok(next + quote.maxFeeUnits > cashUnits - 400n, String(cents))
    assert.equal(quote.sizeUnits % 1_000n, 0n)
  }
})

test('a book that is too thin serves a part, and says so', () => {
  const all = quoteBook(book, null, { type: 'all_in', cashUnits: 1_000n * unit })
  assert.deepEqual([all.sizeUnits, all.isComplete], [120n * unit, false])
  const size = quoteBook(book, null, { type: 'buy', sizeUnits: 121n * unit })
  assert.deepEqual([size.sizeUnits, size.isComplete], [120n * unit, false])
  const none = quoteBook({ ...book, asks: [] }, null, { type: 'all_in', cashUnits: unit })
  assert.deepEqual([none.sizeUnits, none.isComplete, none.averagePriceMicros], [0n, false, 0n])
})

test('a sale yields what the bids pay, less the fee', () => {
  const quote = quoteBook(book, fee, { type: 'sell', sizeUnits: 15n * unit })
  // 10 at 0.40 and 5 at 0.30; the fees are 10 * 0.04 * 0.24 and 5 * 0.04 * 0.21.
  assert.deepEqual(
    [quote.cashUnits, quote.feeUnits, quote.allInUnits, quote.orderCashUnits],
    [5_500_000n, 138_000n, 5_362_000n, 0n],
  )
  assert.deepEqual([quote.worstPriceMicros, quote.side, quote.isComplete], [300_000n, 'sell', true])
})

test('a better price than that of the quote never makes its order cost more than the dollars', () => {
  const { orderCashUnits } = quoteBook(book, fee, { type: 'all_in', cashUnits: 8n * unit })
  for (let price = 10_000n; price <= 600_000n; price += 10_000n) {
    const paid = takerFeeUnits(fee, price, (orderCashUnits * unit) / price)
    assert.ok(orderCashUnits + paid <= 8n * unit, `${price}: ${orderCashUnits + paid}`)
  }
})

test('levels beyond the worst price of a quote do not count', () => {
  const dollars = { type: 'all_in', cashUnits: 20n * unit } as const
  const within = quoteBook(book, null, dollars, 600_000n)
  // 10 at 0.50 and 10 at 0.60 cost 11 of the 20 dollars.
  assert.deepEqual(
    [within.sizeUnits, within.cashUnits, within.worstPriceMicros, within.isComplete],
    [20n * unit, 11n * unit, 600_000n, false],
  )
  assert.deepEqual(quoteBook(book, null, dollars, 700_000n), quoteBook(book, null, dollars))
  const sale = quoteBook(book, null, { type: 'sell', sizeUnits: 15n * unit }, 350_000n)
  assert.deepEqual([sale.sizeUnits, sale.worstPriceMicros, sale.isComplete], [10n * unit, 400_000n, false])
  const none = quoteBook(book, null, { type: 'buy', sizeUnits: unit }, 490_000n)
  assert.deepEqual([none.sizeUnits, none.isComplete], [0n, false])
})
