import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { feeOf, parseBook, parseEvents, parseMarkets } from './parse-markets.ts'
import { takerFeeUnits } from './taker-fee.ts'

const ids = [
  '45601394554497090173642354630373884477724604907691447337031201817815960365378',
  '9007199254740993',
]
const listed = {
  id: '1',
  conditionId: `0x${'ab'.repeat(32)}`,
  slug: 'rain',
  question: 'Rain?',
  outcomes: '["Yes", "No"]',
  outcomePrices: '["0.25", "0.75"]',
  clobTokenIds: JSON.stringify(ids),
  acceptingOrders: true,
  orderPriceMinTickSize: 0.01,
  orderMinSize: 5,
  secondsDelay: 3,
  volume: '1234.5',
  endDate: '2027-01-01T00:00:00Z',
}
const resolved = { ...listed, closed: true, umaResolutionStatus: 'resolved' }

const parsed = (change: object, base: object = listed) => {
  const skipped: unknown[] = []
  const good = { ...listed, slug: 'good' }
  const markets = parseMarkets([{ ...base, ...change }, good], (_list, record) => skipped.push(record))
  // A market of whatever form hides none of the others.
  assert.equal(markets.at(-1)?.slug, 'good')
  assert.equal(markets.length + skipped.length, 2)
  return markets.length === 2 ? markets[0] : undefined
}

test('a market with figures of the known form is read', () => {
  const market = parsed({})
  assert.deepEqual(
    market?.outcomes.map(({ outcomeId, priceMicros }) => [outcomeId, priceMicros]),
    [
      [ids[0], 250_000n],
      [ids[1], 750_000n],
    ],
  )
  assert.deepEqual(
    [market?.tickMicros, market?.minSizeUnits, market?.volumeUnits, market?.matchDelaySeconds],
    [10_000n, 5_000_000n, 1_234_500_000n, 3],
  )
  assert.deepEqual(parsed({ outcomePrices: '["1", "0"]' }, resolved)?.payoutMicros, [1_000_000n, 0n])
  assert.deepEqual(parsed({ outcomePrices: ['0.5', '0.5'] }, resolved)?.payoutMicros, [500_000n, 500_000n])
})

test('a market with ids or outcomes of an unknown form is left out', () => {
  const many = Array.from({ length: 5_000 }, (_, index) => String(index + 1))
  const nested = `${'['.repeat(9_000)}${']'.repeat(9_000)}`
  for (const change of [
    { clobTokenIds: JSON.stringify(many), outcomes: JSON.stringify(many) },
    { clobTokenIds: JSON.stringify([ids[0], ids[0]]) },
    { clobTokenIds: '["0x12", "5"]' },
    { clobTokenIds: '["-3", "5"]' },
    { clobTokenIds: `["${'9'.repeat(78)}", "5"]` },
    { clobTokenIds: [1e77, 5] },
    { clobTokenIds: `[${nested}, "5"]` },
    { clobTokenIds: '[{"a": 1}, "5"]' },
    { clobTokenIds: '[' },
    { clobTokenIds: null },
    { outcomes: '["Yes"]' },
    { outcomes: '[["Yes"], "No"]' },
    { conditionId: 'x' },
    { conditionId: `0x${'ab'.repeat(40)}` },
    { version: 'v9' },
    { secondsDelay: 0.5 },
  ])
    assert.equal(parsed(change), undefined, JSON.stringify(change).slice(0, 80))
})

test('a figure that is none is null or zero, and never counts', () => {
  for (const wire of ['-0.5', '1.5', 'NaN', '1e400', '', '0x1', 1e300, -3]) {
    const market = parsed({
      outcomePrices: [wire, '0.75'],
      bestBid: wire,
      bestAsk: wire,
      lastTradePrice: wire,
    })
    assert.deepEqual(
      [
        market?.outcomes[0]?.priceMicros,
        market?.bestBidMicros,
        market?.bestAskMicros,
        market?.lastPriceMicros,
      ],
      [null, null, null, null],
      String(wire),
    )
    assert.equal(parsed({ outcomePrices: [wire, '1'] }, resolved)?.payoutMicros, null)
  }
  for (const wire of ['-1', '1e40', 'NaN', 1e300, -0.5]) {
    const market = parsed({ volume: wire, volume24hr: wire, liquidity: wire, orderMinSize: wire })
    assert.deepEqual(
      [market?.volumeUnits, market?.volume24hUnits, market?.liquidityUnits, market?.minSizeUnits],
      [0n, 0n, 0n, 0n],
      String(wire),
    )
  }
  for (const wire of [0, '-0.01', 2, '1e9', 0.3, 'NaN'])
    assert.equal(parsed({ orderPriceMinTickSize: wire })?.tickMicros, 0n, String(wire))
  assert.deepEqual(
    [-5, 1e12].map((secondsDelay) => parsed({ secondsDelay })?.matchDelaySeconds),
    [0, 3_600],
  )
  for (const endDate of ['soon', '+099999-01-01T00:00:00Z', '-000001-01-01T00:00:00Z', '9'.repeat(30)])
    assert.equal(parsed({ endDate })?.endsAt, null, endDate)
})

test('payouts that are not a dollar together, or last prices of trades, are none', () => {
  for (const outcomePrices of [
    ['1', '1'],
    ['0', '0'],
    ['0.4', '0.5'],
    ['0.97', '0.03'],
    ['1'],
    ['1', '0', '0'],
    '["1", null]',
  ])
    assert.equal(parsed({ outcomePrices }, resolved)?.payoutMicros, null, String(outcomePrices))
  assert.deepEqual(parsed({ outcomePrices: ['0.9999995', '0.0000004'] }, resolved)?.payoutMicros, [
    1_000_000n,
    0n,
  ])
})

test('a fee of an unknown form is refused where it is used', () => {
  assert.equal(feeOf(null), null)
  for (const rate of ['0', 0, '0.000', '0e5']) assert.equal(feeOf({ rate, exponent: 1 }), null)
  assert.deepEqual(feeOf({ rate: 5e-5, exponent: '1.0' }), { rate: '0.00005', exponent: '1' })
  for (const rate of ['', ' ', 'NaN', '1.5', -0.1, 1e300, '0x0'])
    assert.throws(
      () => takerFeeUnits(feeOf({ rate, exponent: 1 }), 500_000n, 1_000_000n),
      Fault,
      String(rate),
    )
})

test('an event shows so many markets, and those alone that can be read', () => {
  const markets = [{ ...listed, clobTokenIds: 'x' }, listed, ...Array.from({ length: 2_000 }, () => listed)]
  const records = [{ id: 1, slug: 'a', title: 'A', volume: '-3', markets }, { id: {} }]
  const [event, ...others] = parseEvents(records, () => {})
  assert.deepEqual([event?.markets.length, event?.volumeUnits, others.length], [999, 0n, 0])
})

const book = {
  market: listed.conditionId,
  asset_id: ids[0]!,
  timestamp: '1700000000000',
  bids: [{ price: '0.4', size: '10' }],
  asks: [{ price: '0.6', size: '10' }],
  min_order_size: '5',
  tick_size: '0.01',
  neg_risk: false,
}

test('a book with a figure that is none is no book', () => {
  assert.equal(parseBook(book).asks.length, 1)
  for (const change of [
    { asks: [{ price: '0', size: '10' }] },
    { asks: [{ price: '1', size: '10' }] },
    { bids: [{ price: '-0.4', size: '10' }] },
    { bids: [{ price: '0.4', size: '-10' }] },
    { bids: [{ price: '0.4', size: '1e30' }] },
    { bids: Array.from({ length: 10_001 }, () => ({ price: '0.4', size: '1' })) },
    { tick_size: '0' },
    { tick_size: '2' },
    { min_order_size: '-1' },
  ])
    assert.throws(
      () => parseBook({ ...book, ...change }),
      (error) => error instanceof Fault && error.code === 'upstream_changed',
    )
})
