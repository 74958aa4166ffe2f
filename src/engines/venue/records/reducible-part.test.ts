import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Move, ownAfter } from './reducible-part.ts'

const moves = (...list: [Move['owner'], bigint][]): Move[] =>
  list.map(([owner, change]) => ({ owner, change }))

test('holds what its own fills opened and did not close', () => {
  assert.equal(ownAfter(moves(['own', 20n], ['own', -5n]), 15n), 15n)
  assert.equal(ownAfter(moves(['other', 10n], ['own', 20n], ['own', -5n]), 25n), 15n)
  assert.equal(ownAfter([], 30n), 0n)
})

test('keeps its part while others reduce theirs, and never more than the account holds', () => {
  assert.equal(ownAfter(moves(['other', 10n], ['own', 20n], ['other', -10n]), 20n), 20n)
  assert.equal(ownAfter(moves(['own', 20n], ['other', -12n]), 8n), 8n)
})

test('owns nothing of a position that was closed and opened again, or that turned', () => {
  assert.equal(ownAfter(moves(['own', 20n], ['other', -20n], ['other', 30n]), 30n), 0n)
  assert.equal(ownAfter(moves(['own', 20n], ['other', -50n], ['other', 40n]), 10n), 0n)
  assert.equal(ownAfter(moves(['own', 20n], ['other', -20n], ['other', 30n], ['own', 5n]), 35n), 5n)
})

test('counts a liquidation against its part first, as far as that reaches', () => {
  assert.equal(ownAfter(moves(['other', 10n], ['own', 20n], ['unknown', -5n]), 25n), 15n)
  assert.equal(ownAfter(moves(['other', 40n], ['own', 20n], ['unknown', -25n], ['own', 3n]), 38n), 3n)
  assert.equal(ownAfter(moves(['unknown', 20n], ['own', 5n], ['unknown', 10n]), 35n), 5n)
})

test('knows what the account held before its first fill', () => {
  assert.equal(ownAfter(moves(['own', 20n]), 15n), 15n)
  assert.equal(ownAfter(moves(['own', 20n]), 500n), 20n)
})
