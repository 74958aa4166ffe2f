import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createQuoteOwners } from './quote-owners.ts'

test('a user whose quote failed comes last, and is asked again once the share has a quote', () => {
  let nowMs = 0
  const owners = createQuoteOwners(() => nowMs)
  owners.failed('a', 4_000)
  assert.deepEqual(owners.inTurn(['a', 'b']), ['b'])
  assert.deepEqual(owners.inTurn(['a']), [])
  nowMs = 4_000
  assert.deepEqual(owners.inTurn(['a', 'b']), ['b', 'a'])
  owners.answered('a')
  assert.deepEqual(owners.inTurn(['a', 'b']), ['a', 'b'])
})

test('of users whose quotes failed the one whose failure is longest ago comes first', () => {
  const owners = createQuoteOwners(() => 0)
  for (const userId of ['a', 'b', 'a']) owners.failed(userId, 0)
  assert.deepEqual(owners.inTurn(['a', 'b', 'c']), ['c', 'b', 'a'])
  assert.deepEqual(owners.last(), ['b', 'a'])
})

test('a share that is free in two hours is tried again after ten seconds', () => {
  let nowMs = 0
  const owners = createQuoteOwners(() => nowMs)
  owners.failed('a', 7_200_000)
  nowMs = 10_000
  assert.deepEqual(owners.inTurn(['a']), ['a'])
})

test('many users without a share keep one who has one waiting for a few rounds only', () => {
  let nowMs = 0
  const owners = createQuoteOwners(() => nowMs)
  const users = Array.from({ length: 20 }, (_, n) => `user ${n}`)
  let tries = 0
  const isAnswered = () => {
    for (const userId of owners.inTurn(users)) {
      tries += 1
      if (userId === 'user 19') return true
      owners.failed(userId, 1_000)
    }
    return false
  }
  let rounds = 1
  for (; rounds < 50 && !isAnswered(); rounds += 1) nowMs += 2_000
  assert.deepEqual([rounds, tries], [4, 20])
  // From then on it comes first.
  assert.equal(owners.inTurn(users)[0], 'user 19')
})
