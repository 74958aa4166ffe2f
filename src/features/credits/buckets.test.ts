import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planAccountOf } from '#kernel/money/credit-accounts.ts'
import { liveBuckets, spendableAccounts, subAccountOf, totalOf } from './buckets.ts'

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

test('credits of plans are spent before purchased ones, those that expire first at the head', () => {
  const [early, late, over] = ['in_1', 'in_2', 'in_3'].map(planAccountOf)
  const expiries = [
    { sub_account: late!, expires_at: new Date(3_000) },
    { sub_account: over!, expires_at: now },
    { sub_account: early!, expires_at: new Date(2_000) },
  ]
  assert.deepEqual(spendableAccounts(expiries, now), [
    subAccountOf('signup'),
    subAccountOf('referral'),
    early,
    late,
    subAccountOf('purchased'),
  ])
  const units = [early, late, over].map((subAccount) => ({ subAccount: subAccount!, availUnits: 5n }))
  assert.deepEqual(
    liveBuckets([...balances, ...units], expiries, now).map(({ kind, credits }) => [kind, credits]),
    [
      ['signup', 200n],
      ['plan', 5n],
      ['plan', 5n],
      ['purchased', 300n],
    ],
  )
})
