import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bookOf, liveBuckets, totalOf } from './buckets.ts'

const now = new Date(1_000)
const books = [
  { book: bookOf('purchased'), availUnits: 300n },
  { book: bookOf('signup'), availUnits: 200n },
  { book: bookOf('referral'), availUnits: 0n },
  { book: 'outside', availUnits: -500n },
]

test('what expires first is spent first, and only books of credits count', () => {
  const live = liveBuckets(books, [{ book: bookOf('signup'), expires_at: new Date(1_001) }], now)
  assert.deepEqual(
    live.map(({ kind }) => kind),
    ['signup', 'purchased'],
  )
  assert.equal(totalOf(live), 500n)
})

test('a bucket is dead from the moment on at which it expires', () => {
  const live = liveBuckets(books, [{ book: bookOf('signup'), expires_at: now }], now)
  assert.deepEqual(live, [{ kind: 'purchased', credits: 300n, expiresAt: null }])
})
