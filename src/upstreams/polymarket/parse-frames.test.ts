import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseMarketFrame, parseUserFrame } from './parse-frames.ts'

const own = { wallet: '0x1', key: 'k' }
const at = { timestamp: '1796031914072' }
const book = {
  event_type: 'book',
  market: '0xm',
  asset_id: '1',
  bids: [
    { price: '0.4', size: '5' },
    { price: '0.6', size: '7' },
  ],
  asks: [
    { price: '0.9', size: '5' },
    { price: '0.7', size: '7' },
  ],
  hash: 'h',
  min_order_size: '5',
  tick_size: '0.01',
  neg_risk: false,
  ...at,
}

test('a book has its best levels first, in whatever order they came', () => {
  for (const frame of [book, { ...book, bids: [...book.bids].reverse(), asks: [...book.asks].reverse() }]) {
    const [update] = parseMarketFrame(frame) ?? []
    assert.ok(update?.type === 'book')
    assert.deepEqual(
      update.book.bids.map(({ priceMicros }) => priceMicros),
      [600_000n, 400_000n],
    )
    assert.deepEqual(
      update.book.asks.map(({ priceMicros }) => priceMicros),
      [700_000n, 900_000n],
    )
  }
})

test('changes of prices name the best of each outcome, and an empty side has none', () => {
  const frame = {
    event_type: 'price_change',
    market: '0xm',
    price_changes: [
      { asset_id: '1', price: '0.5', size: '5', side: 'BUY', best_bid: '0.5', best_ask: '1' },
      { asset_id: '2', price: '0.5', size: '5', side: 'SELL', best_bid: '', best_ask: '0.5' },
    ],
    ...at,
  }
  assert.deepEqual(
    parseMarketFrame(frame)?.map((update) => update.type === 'best' && [update.bidMicros, update.askMicros]),
    [
      [500_000n, null],
      [null, 500_000n],
    ],
  )
})

test('ticks, last trades and results become updates', () => {
  const [tick] = parseMarketFrame({
    event_type: 'tick_size_change',
    market: '0xm',
    asset_id: '1',
    new_tick_size: '0.001',
    ...at,
  })!
  assert.ok(tick?.type === 'tick' && tick.tickMicros === 1_000n)
  const [last] = parseMarketFrame({
    event_type: 'last_trade_price',
    market: '0xm',
    asset_id: '1',
    price: '0.31',
    size: '2',
    ...at,
  })!
  assert.ok(last?.type === 'last_trade' && last.priceMicros === 310_000n && last.sizeUnits === 2_000_000n)
  const [result] = parseMarketFrame({
    event_type: 'market_resolved',
    market: '0xm',
    winning_asset_id: null,
    ...at,
  })!
  assert.ok(result?.type === 'resolved' && result.winningOutcomeId === null)
})

test('an unknown event is ignored, and a known one of another form is a gap', () => {
  assert.deepEqual(parseMarketFrame({ event_type: 'new_market', id: '1' }), [])
  assert.deepEqual(parseUserFrame({ event_type: 'reward' }, own), [])
  for (const frame of [
    { ...book, bids: 'none' },
    { ...book, timestamp: 'soon' },
    'text',
    null,
    undefined,
    {},
  ])
    assert.equal(parseMarketFrame(frame), undefined)
  const order = {
    event_type: 'order',
    id: 'o',
    market: '0xm',
    asset_id: '1',
    type: 'PLACEMENT',
    status: 'LIVE',
    size_matched: '0',
    ...at,
  }
  const [update] = parseUserFrame(order, own) ?? []
  assert.ok(update?.type === 'order' && update.change === 'placement' && update.status === 'live')
  for (const frame of [
    { ...order, type: 'OTHER' },
    { ...order, status: 'GONE' },
    { event_type: 'order' },
    { event_type: 'trade' },
    { event_type: 'trade', id: 't' },
  ])
    assert.equal(parseUserFrame(frame, own), undefined)
})
