import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { parseOrder, parseSettlement, parseTrade } from './parse-account.ts'

const own = { wallet: '0xAbCdEf0000000000000000000000000000000001', key: 'k' }
const stranger = '0x9999999999999999999999999999999999999999'
const maker = {
  order_id: 'o2',
  owner: 'k',
  maker_address: own.wallet.toLowerCase(),
  matched_amount: '20',
  price: '0.4',
  fee_rate_bps: '',
  asset_id: 'yes',
  outcome: 'Yes',
  side: 'BUY',
}
const trade = {
  id: 't1',
  taker_order_id: 'o1',
  market: '0x1',
  asset_id: 'no',
  side: 'BUY',
  size: '20',
  price: '0.6',
  fee_rate_bps: '0',
  status: 'TRADE_STATUS_CONFIRMED',
  match_time: '1796031914',
  last_update: '1796031920',
  outcome: 'No',
  owner: 'other',
  maker_address: stranger,
  transaction_hash: '',
  trader_side: 'MAKER',
  maker_orders: [maker],
}

test('a maker’s leg is its own outcome and price, also where the taker bought the other outcome', () => {
  const [leg, ...more] = parseTrade(trade, own)
  assert.deepEqual(more, [])
  assert.deepEqual(
    [leg!.role, leg!.outcomeId, leg!.side, leg!.priceMicros, leg!.sizeUnits, leg!.orderId, leg!.feeRateBps],
    ['maker', 'yes', 'buy', 400_000n, 20_000_000n, 'o2', '0'],
  )
  assert.deepEqual([leg!.txHash, leg!.settlement], [null, 'confirmed'])
})

test('a taker’s leg is the trade itself, and an account with both has both', () => {
  const taken = { ...trade, maker_address: own.wallet, trader_side: 'TAKER', maker_orders: [] }
  assert.deepEqual(
    parseTrade(taken, own).map(({ role, outcomeId, priceMicros }) => [role, outcomeId, priceMicros]),
    [['taker', 'no', 600_000n]],
  )
  assert.deepEqual(
    parseTrade({ ...taken, maker_orders: [maker, { ...maker, maker_address: stranger }] }, own).map(
      ({ role }) => role,
    ),
    ['taker', 'maker'],
  )
  assert.deepEqual(parseTrade({ ...trade, maker_orders: [] }, own), [])
})

test('a maker’s side follows from the taker’s where the venue names none', () => {
  const sideOf = (asset_id: string, side: string) =>
    parseTrade({ ...trade, side, maker_orders: [{ ...maker, asset_id, side: null }] }, own)[0]?.side
  assert.deepEqual(
    [sideOf('no', 'BUY'), sideOf('no', 'SELL'), sideOf('yes', 'BUY'), sideOf('yes', 'SELL')],
    ['sell', 'buy', 'buy', 'sell'],
  )
  const unnamed = { ...maker, maker_address: null }
  assert.equal(
    parseTrade({ ...trade, maker_orders: [unnamed, { ...unnamed, owner: 'other' }] }, own).length,
    1,
  )
})

test('both forms of a settlement are read, and an unknown one is none', () => {
  const words = ['MATCHED_NOT_BROADCASTED', 'MATCHED', 'MINED', 'CONFIRMED', 'RETRYING', 'FAILED']
  for (const word of words) {
    assert.equal(parseSettlement(word), word.toLowerCase())
    assert.equal(parseSettlement(`TRADE_STATUS_${word}`), word.toLowerCase())
  }
  assert.throws(() => parseSettlement('SETTLED'), Fault)
})

test('an order has its state, its end and its trades', () => {
  const order = {
    id: 'o',
    status: 'ORDER_STATUS_LIVE',
    market: '0x1',
    asset_id: 'yes',
    side: 'SELL',
    outcome: 'Yes',
    original_size: '10.5',
    size_matched: '0',
    price: '0.62',
    order_type: 'GTD',
    expiration: '1796031914',
    created_at: 1_796_000_000,
    associate_trades: null,
  }
  const { status, expiresAt, timeInForce, tradeIds, sizeUnits } = parseOrder(order)
  assert.deepEqual(
    [status, expiresAt, timeInForce, tradeIds, sizeUnits],
    ['live', new Date(1_796_031_914_000), 'gtd', [], 10_500_000n],
  )
  assert.equal(parseOrder({ ...order, expiration: '0' }).expiresAt, null)
  assert.equal(parseOrder({ ...order, outcome: 'Y\u0000es' }).outcome, 'Y es')
  for (const [word, state] of [
    ['MATCHED', 'matched'],
    ['DELAYED', 'delayed'],
    ['UNMATCHED', 'live'],
    ['CANCELED', 'canceled'],
    ['CANCELED_MARKET_RESOLVED', 'canceled_market_resolved'],
    ['INVALID', 'invalid'],
  ] as const)
    assert.equal(parseOrder({ ...order, status: word }).status, state)
  assert.throws(() => parseOrder({ ...order, status: 'GONE' }), Fault)
  assert.throws(() => parseOrder({ ...order, side: 'HOLD' }), Fault)
})
