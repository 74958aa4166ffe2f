import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alternatives, editDistance, nearest } from './nearest-names.ts'

test('the distance counts edits, a swap of neighbours as one, and ends at the maximum', () => {
  assert.equal(editDistance('price', 'price', 2), 0)
  assert.equal(editDistance('pirce', 'price', 2), 1)
  assert.equal(editDistance('prise', 'price', 2), 1)
  assert.equal(editDistance('', 'ab', 2), 2)
  assert.equal(editDistance('side', 'size', 0), undefined)
  assert.equal(editDistance('abcdef', 'uvwxyz', 3), undefined)
  assert.equal(editDistance('a', 'abcdef', 3), undefined)
})

const fields = ['asset', 'side', 'size', 'notional_usd', 'limit_price', 'tp_price', 'sl_price', 'reduce_only']

test('case and separators count for nothing, then edits, then whole words', () => {
  assert.deepEqual(nearest('notionalUsd', fields), ['notional_usd'])
  assert.deepEqual(nearest('REDUCE-ONLY', fields), ['reduce_only'])
  assert.deepEqual(nearest('notional_usdc', fields), ['notional_usd'])
  assert.deepEqual(nearest('limt_price', fields), ['limit_price'])
  assert.deepEqual(nearest('notional', fields), ['notional_usd'])
  assert.deepEqual(nearest('price', fields), ['limit_price', 'tp_price', 'sl_price'])
  assert.deepEqual(nearest('stop_sl_price', fields), ['sl_price'])
})

test('what is near to nothing, empty or endless has no suggestion', () => {
  for (const name of ['', 'x', 'foo', 'quantity', 'a'.repeat(10_000), '__proto__', '_'])
    assert.deepEqual(nearest(name, fields), [], name.slice(0, 20))
  assert.deepEqual(nearest('price', [...fields, 'mark_price']), [], 'four are no suggestion')
})

test('alternatives are listed as a sentence', () => {
  assert.equal(alternatives(['a']), 'a')
  assert.equal(alternatives(['a', 'b', 'c']), 'a, b or c')
})
