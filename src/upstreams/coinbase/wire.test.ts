import assert from 'node:assert/strict'
import { test } from 'node:test'
import { spotPriceOf } from './wire.ts'

const priceOf = (data: object) => spotPriceOf(JSON.stringify({ data }), 'ETH', 'USD')

test('a spot price keeps its digits', () => {
  assert.equal(priceOf({ amount: '3500.1250', base: 'ETH', currency: 'USD' }), '3500.125')
  assert.equal(priceOf({ amount: '3500', currency: 'USD' }), '3500')
})

test('the price of another pair, a zero, a number and a page are no price', () => {
  assert.equal(priceOf({ amount: '3500', base: 'BTC', currency: 'USD' }), undefined)
  assert.equal(priceOf({ amount: '3500', base: 'ETH', currency: 'EUR' }), undefined)
  assert.equal(priceOf({ amount: '0.00', base: 'ETH', currency: 'USD' }), undefined)
  assert.equal(priceOf({ amount: '-1', base: 'ETH', currency: 'USD' }), undefined)
  assert.equal(priceOf({ amount: 3500, base: 'ETH', currency: 'USD' }), undefined)
  assert.equal(priceOf({ base: 'ETH', currency: 'USD' }), undefined)
  assert.equal(spotPriceOf('<html>', 'ETH', 'USD'), undefined)
  assert.equal(spotPriceOf('{"errors":[{"id":"not_found"}]}', 'ETH', 'USD'), undefined)
})
