import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { createReadBudget, type ReadClass } from './read-budget.ts'

function budgetFixture() {
  const clock = { ms: 1_000_000 }
  const budget = createReadBudget(() => clock.ms)
  /** Takes until the budget refuses, and returns how much it gave. */
  const takeAll = (userId: string, readClass: ReadClass): number => {
    for (let count = 0; ; count += 1)
      try {
        budget.take(userId, readClass)
      } catch {
        return count
      }
  }
  return { clock, budget, takeAll }
}
const services = ['catalogue', 'books', 'record', 'account'] as const

test('24 users who take all that they get leave reads to a 25th, whatever the service', () => {
  for (const service of services) {
    const { clock, budget, takeAll } = budgetFixture()
    const taken = Array.from({ length: 24 }, (_, index) => takeAll(`user-${index}`, service))
    assert.ok(Math.min(...taken) >= 1, `${service}: ${taken}`)
    budget.take('late', service)
    // The same users ask on in every second, and somebody new still reads every two seconds.
    for (let second = 1; second <= 60; second += 1) {
      clock.ms += 1_000
      for (let index = 0; index < 24; index += 1) takeAll(`user-${index}`, service)
      if (second % 2 === 0) budget.take(`new-${second}`, service)
    }
  }
})

test('a user alone gets the whole share, and learns when there is room again', () => {
  const { clock, budget, takeAll } = budgetFixture()
  assert.equal(takeAll('ada', 'catalogue'), 40)
  assert.throws(
    () => budget.take('ada', 'catalogue'),
    (error) => error instanceof Fault && error.extras.owner === 'user' && error.extras.retry_after === 11,
  )
  clock.ms += 10_100
  assert.equal(takeAll('ada', 'catalogue'), 40)
})

test('beyond half of the window a user gets what is left divided by its users', () => {
  const { budget, takeAll } = budgetFixture()
  assert.deepEqual([takeAll('one', 'catalogue'), takeAll('two', 'catalogue')], [40, 35])
  const third = takeAll('three', 'catalogue')
  assert.ok(third <= Math.floor(45 / 3) && third > 5, String(third))
  assert.throws(
    () => budget.take('one', 'catalogue'),
    (error) => error instanceof Fault && ['user', 'instance'].includes(String(error.extras.owner)),
  )
})

test('a weight above the share counts as the share', () => {
  const { budget } = budgetFixture()
  budget.take('ada', 'catalogue', 400)
  assert.throws(() => budget.take('ada', 'catalogue'), Fault)
  budget.take('bob', 'catalogue', 10)
})
