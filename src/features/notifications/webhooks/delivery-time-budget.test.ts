import assert from 'node:assert/strict'
import { test } from 'node:test'
import { budgetMs, createDeliveryTime } from './delivery-time-budget.ts'

test('a user whose deliveries took the budget has spent it until the minute of the first one is over', () => {
  let nowMs = 1_000
  const time = createDeliveryTime(() => nowMs)
  time.add('slow', budgetMs - 1)
  time.add('quick', 10)
  assert.deepEqual(time.spent(), [])
  nowMs += 59_999
  time.add('slow', 1)
  assert.deepEqual(time.spent(), ['slow'])
  nowMs += 1
  assert.deepEqual(time.spent(), [])
  time.add('slow', 1)
  assert.deepEqual(time.spent(), [], 'the next minute has a budget of its own')
})
