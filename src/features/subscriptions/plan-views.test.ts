import assert from 'node:assert/strict'
import { test } from 'node:test'
import { statusOf } from './plan-views.ts'

const at = (day: number) => new Date(Date.UTC(2026, 0, day))
const paid = (endDay: number, dispute: 'open' | 'lost' | 'won' | null = null) => ({
  subscription_id: 'sub_1',
  paid_at: at(1),
  expires_at: at(endDay),
  dispute,
})
const active = { id: 'sub_1', status: 'active' }

test('a dispute suspends the plan that the payment, or the change after it, is for', () => {
  assert.equal(statusOf(active, [paid(31), paid(31, 'open')]), 'suspended')
  assert.equal(statusOf(active, [paid(31, 'lost'), paid(31)]), 'suspended')
  assert.equal(statusOf(active, [paid(31), paid(31, 'won')]), 'active')
})

test('a dispute of a period that has ended, or of another subscription, suspends nothing', () => {
  assert.equal(statusOf(active, [paid(31), paid(3, 'lost')]), 'active')
  assert.equal(statusOf({ ...active, id: 'sub_2' }, [paid(31, 'open')]), 'active')
  assert.equal(statusOf(active, []), 'active')
})
