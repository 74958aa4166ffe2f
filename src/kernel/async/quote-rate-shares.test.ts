import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { createQuoteBudget, type QuoteUrgency, shareWaitMs } from './quote-rate-shares.ts'

const provider = { name: 'provider', title: 'Provider' }
const windowMs = 7_200_000
const slotMs = 30_000

function fixture(max = 80) {
  let now = 1_000_000
  const budget = createQuoteBudget({ max, windowMs, provider, nowMs: () => now })
  const refusal = (user: string, urgency: QuoteUrgency): Fault | undefined => {
    try {
      budget.take({ user, urgency })
      return undefined
    } catch (error) {
      assert.ok(error instanceof Fault, String(error))
      return error
    }
  }
  /** How many quotes a user gets at once. */
  const taken = (user: string, urgency: QuoteUrgency): number => {
    for (let count = 0; count <= 2 * max; count += 1) if (refusal(user, urgency)) return count
    throw new Error('there is no limit')
  }
  return {
    refusal,
    taken,
    forward(ms: number) {
      now += ms
    },
  }
}

test('one user gets a share, and leaves the rest of a class to others', () => {
  const { taken } = fixture()
  assert.equal(taken('busy', 'trade'), 20)
  assert.equal(taken('other', 'trade'), 20)
  assert.equal(taken('third', 'watch'), 0, 'orders and dry runs take no more than half of all')
  assert.equal(taken('third', 'trade'), 20)
  assert.equal(taken('fourth', 'trade'), 0)
})

test('however many quotes other users take, an exit gets its own', () => {
  const { taken, refusal } = fixture()
  const crowd = Array.from({ length: 20 }, (_, at) => `user ${at}`)
  for (const urgency of ['watch', 'trade'] as const) for (const user of crowd) taken(user, urgency)
  assert.ok(refusal('holder', 'trade'))
  assert.equal(refusal('holder', 'exit'), undefined)
})

test('the exits of one user leave the part for exits to the exits of others', () => {
  const { taken } = fixture()
  for (const user of ['a', 'b', 'c']) taken(user, 'trade')
  assert.equal(taken('seller', 'exit'), 8)
  assert.equal(taken('holder', 'exit'), 8)
})

test('one user gets no more than its share of all classes, exits included', () => {
  const { taken } = fixture()
  assert.equal(taken('busy', 'watch'), 20)
  assert.equal(taken('busy', 'trade'), 20)
  assert.equal(taken('busy', 'exit'), 8)
})

test('a refused quote says whose share is used up, and exactly when one is free', () => {
  const { taken, refusal, forward } = fixture()
  const count = taken('busy', 'trade')
  assert.deepEqual(refusal('busy', 'trade')?.extras, {
    upstream: 'provider',
    retry_after: 7_230,
    budget: 'quotes',
    budget_class: 'trade',
    budget_of: 'account',
  })
  forward(windowMs + slotMs - 1_000)
  assert.equal(refusal('busy', 'trade')?.extras.retry_after, 1)
  forward(1_000)
  assert.equal(taken('busy', 'trade'), count)
})

test('a refused quote counts for nobody', () => {
  const { taken, refusal } = fixture()
  for (const user of ['a', 'b', 'c']) taken(user, 'trade')
  for (let at = 0; at < 100; at += 1) assert.equal(refusal('d', 'trade')?.extras.budget_of, 'gateway')
  assert.equal(taken('d', 'exit'), 8)
})

test('only the refusal for a share of a user has a time at which that share has a quote again', () => {
  const { taken, refusal, forward } = fixture()
  taken('busy', 'trade')
  assert.equal(shareWaitMs(refusal('busy', 'trade')), windowMs + slotMs)
  forward(windowMs)
  assert.equal(shareWaitMs(refusal('busy', 'trade')), slotMs)
  for (const user of ['b', 'c', 'd']) taken(user, 'trade')
  assert.equal(shareWaitMs(refusal('e', 'trade')), undefined)
  assert.equal(shareWaitMs(new Fault('unavailable', 'It is away', { extras: { retry_after: 3 } })), undefined)
  assert.equal(shareWaitMs(new TypeError('a bug')), undefined)
})
