import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approvedBefore, covers, maxToApprove } from './standing-approval.ts'

const orders = { operations: ['swap_execute'], isSpending: true, notes: [] }
const facts = { credits: 1, chatPerDayUsd: '100', perTransactionUsd: '80', approvalAboveUsd: '50' }

test('a version that may start more than needs an approval is approved up to the most of one order', () => {
  assert.equal(maxToApprove(orders, facts), '80')
  assert.equal(maxToApprove(orders, { ...facts, chatPerDayUsd: '60' }), '60')
  assert.equal(maxToApprove(orders, { ...facts, chatPerDayUsd: '50' }), undefined)
  assert.equal(maxToApprove(orders, { ...facts, approvalAboveUsd: null }), undefined)
  assert.equal(maxToApprove({ ...orders, isSpending: false }, facts), undefined)
})

test('an approval covers what is not above it, and only until it ends', () => {
  const authority = { approvedMicros: '60000000', approvedUntil: '2026-03-01T00:00:00.000Z' }
  const before = approvedBefore({ authority }, new Date('2026-02-28T00:00:00Z'))
  assert.deepEqual(before, authority)
  assert.equal(covers(before, '60'), true)
  assert.equal(covers(before, '60.000001'), false)
  assert.deepEqual(approvedBefore({ authority }, new Date('2026-03-01T00:00:00Z')), {})
  assert.deepEqual(approvedBefore({ authority: null }, new Date('2026-01-01T00:00:00Z')), {})
  assert.equal(covers({}, '1'), false)
})
