import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Move, ownAfter } from './schedule-part.ts'

type Listed = [Move['owner'], bigint]
const moves = (...list: Listed[]): Move[] => list.map(([owner, change]) => ({ owner, change }))
const own = (position: bigint, ...list: Listed[]) => ownAfter(moves(...list), { position })

test('holds what its own fills opened and did not close', () => {
  assert.equal(own(15n, ['own', 20n], ['own', -5n]), 15n)
  assert.equal(own(25n, ['other', 10n], ['own', 20n], ['own', -5n]), 15n)
  assert.equal(own(30n), 0n)
})

test('keeps its part while others reduce theirs, and never more than the account holds', () => {
  assert.equal(own(20n, ['other', 10n], ['own', 20n], ['other', -10n]), 20n)
  assert.equal(own(8n, ['own', 20n], ['other', -12n]), 8n)
})

test('owns nothing of a position that was closed and opened again, or that turned', () => {
  assert.equal(own(30n, ['own', 20n], ['other', -20n], ['other', 30n]), 0n)
  assert.equal(own(10n, ['own', 20n], ['other', -50n], ['other', 40n]), 0n)
  assert.equal(own(35n, ['own', 20n], ['other', -20n], ['other', 30n], ['own', 5n]), 5n)
})

test('counts a liquidation against its part first, as far as that reaches', () => {
  assert.equal(own(25n, ['other', 10n], ['own', 20n], ['unknown', -5n]), 15n)
  assert.equal(own(38n, ['other', 40n], ['own', 20n], ['unknown', -25n], ['own', 3n]), 3n)
  assert.equal(own(35n, ['unknown', 20n], ['own', 5n], ['unknown', 10n]), 5n)
})

test('knows what the account held before its first fill', () => {
  assert.equal(own(15n, ['own', 20n]), 15n)
  assert.equal(own(500n, ['own', 20n]), 20n)
})

test('goes on from what it held before, of which no more than the account held then', () => {
  assert.equal(ownAfter(moves(['own', -5n]), { position: 25n, ownBefore: 20n }), 15n)
  assert.equal(ownAfter(moves(['other', 30n]), { position: 38n, ownBefore: 20n }), 8n)
  assert.equal(ownAfter(moves(['other', 30n]), { position: 20n, ownBefore: 20n }), 0n)
  assert.equal(ownAfter([], { position: -5n, ownBefore: 20n }), 0n)
})

test('counts every reduction against its part where nothing says what the account holds', () => {
  const unrecorded = (...list: Listed[]) => ownAfter(moves(...list), { position: undefined, ownBefore: 10n })
  assert.equal(unrecorded(['other', 100n], ['own', 20n], ['other', -12n]), 18n)
  assert.equal(unrecorded(['other', -12n], ['other', 30n]), 0n)
})
