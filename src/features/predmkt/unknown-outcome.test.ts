import assert from 'node:assert/strict'
import { test } from 'node:test'
import { later } from '#kernel/clock.ts'
import { isEverySendAnswered, lateArrivalMs, nextOfUnanswered } from './unknown-outcome.ts'

const sentAt = new Date('2026-11-28T12:00:00Z')
const deadline = later(sentAt, 600_000)
const at = (ms: number) => later(sentAt, ms)
const unanswered = { deadline, unknownSince: sentAt, isRefused: false, isDuplicate: false }

test('an order without an answer is sent again until its deadline, and then only looked up', () => {
  assert.equal(nextOfUnanswered({ ...unanswered, now: at(1) }), 'send')
  assert.equal(nextOfUnanswered({ ...unanswered, now: at(599_000) }), 'send')
  const lastSent = { ...unanswered, unknownSince: at(599_000) }
  assert.equal(nextOfUnanswered({ ...lastSent, now: at(601_000) }), 'look_up')
  assert.equal(nextOfUnanswered({ ...lastSent, now: at(599_000 + lateArrivalMs) }), 'look_up')
  assert.equal(nextOfUnanswered({ ...lastSent, now: at(599_001 + lateArrivalMs) }), 'absent')
})

test('a refusal of the same bytes ends the sending, and only the time of a late arrival ends the order', () => {
  const refused = { ...unanswered, isRefused: true }
  assert.equal(nextOfUnanswered({ ...refused, now: at(1) }), 'look_up')
  assert.equal(nextOfUnanswered({ ...refused, now: at(lateArrivalMs) }), 'look_up')
  assert.equal(nextOfUnanswered({ ...refused, now: at(lateArrivalMs + 1) }), 'absent')
})

test('an order that the venue says to have is never absent', () => {
  const duplicate = { ...unanswered, isDuplicate: true }
  assert.equal(nextOfUnanswered({ ...duplicate, now: at(1) }), 'look_up')
  assert.equal(nextOfUnanswered({ ...duplicate, now: at(86_400_000) }), 'look_up')
  assert.equal(nextOfUnanswered({ ...duplicate, isRefused: true, now: at(86_400_000) }), 'look_up')
})

test('answers count until another claim of the task may have sent the order', () => {
  const answered = { data: { answered_version: 7 } }
  // The commit of the answer, and the claim that runs the next step.
  assert.ok(isEverySendAnswered({ ...answered, version: 8 }, {}))
  assert.ok(isEverySendAnswered({ ...answered, version: 9 }, {}))
  assert.ok(!isEverySendAnswered({ ...answered, version: 10 }, {}))
  assert.ok(!isEverySendAnswered({ data: {}, version: 1 }, {}))
  assert.ok(!isEverySendAnswered({ data: { answered_version: null }, version: 1 }, {}))
  assert.ok(isEverySendAnswered({ data: {}, version: 5 }, { neverSent: true }))
})
