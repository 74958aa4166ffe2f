import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pricesOf } from './wire.ts'

const now = new Date('2026-01-31T12:00:00Z')
const rule = { now, confidenceMin: 0.9, ageMaxMs: 600_000 }
const seconds = now.getTime() / 1_000

const priced = (fields: string) => pricesOf(`{"coins":{"base:0xAb":{${fields}}}}`, rule)?.get('base:0xab')

test('a fresh price of high confidence keeps its digits', () => {
  const price = priced(`"price":0.17516999999999999,"symbol":"X","timestamp":${seconds},"confidence":0.99`)
  assert.deepEqual(price, { price: '0.17516999999999999', at: now, symbol: 'X' })
})

test('small prices have no exponent and at most 18 decimals', () => {
  const small = (text: string) => priced(`"price":${text},"timestamp":${seconds},"confidence":1`)?.price
  assert.equal(small('2.5e-7'), '0.00000025')
  assert.equal(small('1.23456789012345e-8'), '0.000000012345678901')
  assert.equal(small('3.1415926535897932384626'), '3.141592653589793238')
  assert.equal(small('1e-30'), undefined)
})

test('old, uncertain, absent and zero prices are unknown, never zero', () => {
  assert.equal(priced(`"price":1,"timestamp":${seconds - 601},"confidence":0.99`), undefined)
  assert.equal(priced(`"price":1,"timestamp":${seconds},"confidence":0.89`), undefined)
  assert.equal(priced(`"price":1,"timestamp":${seconds}`), undefined)
  assert.equal(priced(`"price":0,"timestamp":${seconds},"confidence":0.99`), undefined)
  assert.equal(priced(`"price":-1,"timestamp":${seconds},"confidence":0.99`), undefined)
  assert.equal(priced(`"timestamp":${seconds},"confidence":0.99`), undefined)
})

test('a body of another shape is distinguished from one without prices', () => {
  assert.equal(pricesOf('<html>', rule), undefined)
  assert.equal(pricesOf('{"error":"x"}', rule), undefined)
  assert.equal(pricesOf('{"coins":{}}', rule)?.size, 0)
})
