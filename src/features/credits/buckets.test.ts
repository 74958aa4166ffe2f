import assert from 'node:assert/strict'
import { test } from 'node:test'
import { liveBuckets, subAccountOf, totalOf } from './buckets.ts'

const now = new Date(1_000)
const balances = [
  { subAccount: subAccountOf('purchased'), availUnits: 300n },
  { subAccount: subAccountOf('signup'), availUnits: 200n },
  { subAccount: subAccountOf('referral'), availUnits: 0n },
  { subAccount: 'external', availUnits: -500n },
]

test('the bucket that expires first is spent first, and only credit balances count', () => {
  const live = liveBuckets(
    balances,
    [{ sub_account: subAccountOf('signup'), expires_at: new Date(1_001) }],
    now,
  )
  assert.deepEqual(
    live.map(({ kind }) => kind),
    ['signup', 'purchased'],
  )
  assert.equal(totalOf(live), 500n)
})

test('a bucket is empty from its expiry on', () => {
  const live = liveBuckets(balances, [{ sub_account: subAccountOf('signup'), expires_at: now }], now)
  assert.deepEqual(live, [{ kind: 'purchased', credits: 300n, expiresAt: null }])
})
