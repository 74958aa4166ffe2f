import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { budgetSpent } from '#kernel/contract/fault.ts'
import { openVenueHealth } from './venue-health.ts'

type Answer = () => Promise<unknown>
const answering: Answer = async () => new Map()
const unanswered: Answer = () => Promise.reject(new Error('away'))
const overBudget: Answer = () =>
  Promise.reject(
    budgetSpent('overloaded', 'The budget is spent', {
      budget: 'venue_weight',
      owner: 'instance',
      retryAfterSeconds: 1,
    }),
  )

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

function watched(t: TestContext, first: Answer) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let nowMs = 1_700_000_000_000
  let answer = first
  let lastMessageMs = 0
  let pings = 0
  const health = openVenueHealth({
    ping: () => {
      pings += 1
      return answer()
    },
    lastMessageMs: () => lastMessageMs,
    clock: { now: () => new Date(nowMs) },
  })
  health.start()
  t.after(() => health[Symbol.asyncDispose]())
  return {
    asked: () => pings,
    status: () => health.state().status,
    lastOkAt: () => health.state().lastOkAt,
    setAnswer(next: Answer) {
      answer = next
    },
    receivesMessage() {
      lastMessageMs = nowMs
    },
    async advance(seconds: number) {
      for (let at = 0; at < seconds; at += 5) {
        nowMs += 5_000
        t.mock.timers.tick(5_000)
        await nextTurn()
      }
    },
  }
}

test('a venue without an answer yet is degraded, and ok after its first answer', async (t) => {
  const venue = watched(t, answering)
  assert.deepEqual([venue.status(), venue.lastOkAt()], ['degraded', null])
  await nextTurn()
  assert.equal(venue.status(), 'ok')
})

test('a venue that never answered is down', async (t) => {
  const venue = watched(t, unanswered)
  await nextTurn()
  assert.deepEqual([venue.status(), venue.lastOkAt()], ['down', null])
})

test('a venue that stops answering is degraded, then down, and ok after one answer', async (t) => {
  const venue = watched(t, answering)
  await nextTurn()
  const lastOkAt = venue.lastOkAt()
  venue.setAnswer(unanswered)
  await venue.advance(10)
  assert.equal(venue.status(), 'degraded')
  await venue.advance(30)
  assert.equal(venue.status(), 'down')
  assert.deepEqual(venue.lastOkAt(), lastOkAt)
  venue.setAnswer(answering)
  await venue.advance(10)
  assert.equal(venue.status(), 'ok')
})

test('a venue whose stream sends messages is not polled', async (t) => {
  const venue = watched(t, answering)
  await nextTurn()
  for (let round = 0; round < 12; round++) {
    venue.receivesMessage()
    await venue.advance(5)
  }
  assert.deepEqual([venue.asked(), venue.status()], [1, 'ok'])
})

test('a poll that the own budget rejected does not change the health of the venue', async (t) => {
  const venue = watched(t, overBudget)
  await nextTurn()
  assert.equal(venue.status(), 'degraded')
})
