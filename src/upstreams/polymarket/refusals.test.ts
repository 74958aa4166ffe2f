import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  chainNonceOf,
  isDuplicate,
  isWalletBusy,
  orderRefusalOf,
  quotaResetMs,
  relayRefusalOf,
} from './refusals.ts'

test('the words of the venue name the reason of a refused order', () => {
  const balance = 'not enough balance / allowance: the balance is not enough -> balance: 1'
  for (const [message, reason] of [
    [`${balance}, order amount: 10000000`, 'insufficient_balance'],
    [`${balance}, sum of active orders: 5, order amount: 10`, 'insufficient_balance'],
    [`${balance}, sum of matched orders: 5, order amount: 10`, 'venue_balance_lag'],
    ['not enough balance / allowance', 'insufficient_balance'],
    ['invalid post-only order: order crosses book', 'post_only_crosses'],
    ["order couldn't be fully filled. FOK orders are fully filled or killed.", 'not_filled'],
    [
      'no orders found to match with FAK order. FAK orders are partially filled or killed if no match is found.',
      'no_match',
    ],
    ['order 0x12 is invalid. Price (0.625) breaks minimum tick size rule: 0.01', 'tick_invalid'],
    [
      'invalid amounts, the market buy orders maker amount supports a max accuracy of 2 decimals, taker amount a max accuracy of 4 decimals',
      'tick_invalid',
    ],
    ['order 0x12 is invalid. Size (4) lower than the minimum: 5', 'below_minimum'],
    ['invalid amount for a marketable BUY order ($0.5), min size: $1', 'below_minimum'],
    ['invalid price (0.005), min: 0.01 - max: 0.99', 'price_invalid'],
    ['invalid expiration', 'expiration_invalid'],
    ['the market is not yet ready to process new orders', 'market_not_ready'],
    ['the orderbook 123 does not exist', 'market_closed'],
    ['No orderbook exists for the requested token id', 'market_closed'],
    ['Invalid token id', 'unknown_outcome'],
    ['order_version_mismatch', 'version_mismatch'],
    ['the order signer address has to be the address of the API KEY', 'wallet_not_ready'],
    ['maker address not allowed, please use the deposit wallet flow', 'wallet_not_allowed'],
    ['the order owner has to be the owner of the API KEY', 'key_invalid'],
    ['Unauthorized/Invalid api key', 'key_invalid'],
    ['invalid signature', 'invalid_signature'],
    ['Trading restricted in your region, please refer to available regions', 'geoblocked'],
    ["'0x12' address in closed only mode", 'closed_only'],
    ["'0x12' address banned", 'banned'],
    ['something new', 'venue_rejected'],
    ['', 'venue_rejected'],
  ] as const)
    assert.equal(orderRefusalOf(message), reason, message)
})

test('an order that the venue has already is not refused', () => {
  assert.ok(
    isDuplicate(
      "order 0x12 is invalid. Duplicated. Same order has already been placed, can't be placed again.",
    ),
  )
  assert.ok(!isDuplicate('invalid signature'))
})

test('the words of the relayer name the reason, the nonce and the end of a quota', () => {
  assert.equal(
    relayRefusalOf('call blocked: call[0] blocked: calls to 0x12 are not permitted'),
    'call_blocked',
  )
  const stale = 'batch nonce 3 does not match on-chain nonce 12'
  assert.deepEqual([relayRefusalOf(stale), chainNonceOf(stale)], ['nonce_stale', 12n])
  assert.deepEqual(
    ['invalid signature', 'invalid authorization', 'deadline expired', 'other'].map(relayRefusalOf),
    ['invalid_signature', 'not_authorized', 'expired', 'venue_rejected'],
  )
  assert.ok(
    isWalletBusy('wallet busy: active action in progress') && isWalletBusy('wallet has in-flight action'),
  )
  assert.ok(!isWalletBusy(stale))
  assert.equal(quotaResetMs('quota exceeded: 0 units remaining, resets in 60587 seconds'), 60_587_000)
  assert.equal(quotaResetMs('Too Many Requests'), undefined)
  assert.equal(chainNonceOf('invalid signature'), null)
})
