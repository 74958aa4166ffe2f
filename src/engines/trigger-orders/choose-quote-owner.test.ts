import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createQuoteOwners } from './choose-quote-owner.ts'

const quote = 'token:1:0x q'

test('a user whose quote failed comes last, and is asked again once the share has a quote', () => {
  let nowMs = 0
  const owners = createQuoteOwners(() => nowMs)
  owners.failed(quote, 'a', 4_000)
  assert.deepEqual(owners.inTurn(quote, ['a', 'b']), ['b'])
  assert.deepEqual(owners.inTurn('another one', ['a']), [])
  nowMs = 4_000
  assert.deepEqual(owners.inTurn(quote, ['a', 'b']), ['b', 'a'])
  owners.answered(quote, 'a')
  assert.deepEqual(owners.inTurn(quote, ['a', 'b']), ['a', 'b'])
})

test('a quote that nobody was asked for has its owners as they come, and then one after another', () => {
  const owners = createQuoteOwners(() => 0)
  assert.deepEqual(owners.inTurn(quote, ['c', 'a', 'b']), ['c', 'a', 'b'])
  owners.failed(quote, 'a', 0)
  assert.deepEqual(owners.inTurn(quote, ['c', 'a', 'b']), ['b', 'c', 'a'])
  owners.failed(quote, 'c', 0)
  assert.deepEqual(owners.inTurn(quote, ['c', 'a', 'b']), ['a', 'b', 'c'])
  assert.deepEqual(owners.inTurn('another one', ['c', 'a', 'b']), ['c', 'a', 'b'])
})

test('a share that is free in two hours is tried again after ten seconds', () => {
  let nowMs = 0
  const owners = createQuoteOwners(() => nowMs)
  owners.failed(quote, 'a', 7_200_000)
  nowMs = 10_000
  assert.deepEqual(owners.inTurn(quote, ['a']), ['a'])
})

const padded = (n: number) => `user ${String(n).padStart(4, '0')}`

test('many users without a share keep one who has one waiting for a few rounds only', () => {
  let nowMs = 0
  const owners = createQuoteOwners(() => nowMs)
  const users = Array.from({ length: 20 }, (_, n) => padded(n))
  let tries = 0
  const isAnswered = () => {
    for (const userId of owners.inTurn(quote, users)) {
      tries += 1
      if (userId === padded(19)) {
        owners.answered(quote, userId)
        return true
      }
      owners.failed(quote, userId, 1_000)
    }
    return false
  }
  let rounds = 1
  for (; rounds < 50 && !isAnswered(); rounds += 1) nowMs += 2_000
  assert.deepEqual([rounds, tries], [4, 20])
  // From then on it comes first.
  assert.equal(owners.inTurn(quote, users)[0], padded(19))
})

/** Each user who fails has fewer orders than the one who is served. */
function failuresBefore(failing: readonly string[], served: string, waitMs: number): number {
  let nowMs = 0
  const owners = createQuoteOwners(() => nowMs)
  for (let asked = 0; asked < 10_000; asked += 1, nowMs += 10_000) {
    const [userId] = owners.inTurn(quote, [...failing, served])
    if (userId === served) return asked
    if (userId !== undefined) owners.failed(quote, userId, waitMs)
  }
  return Number.POSITIVE_INFINITY
}

test('each owner of a quote is asked before any other one is asked twice, however many fail', () => {
  const failing = Array.from({ length: 1_000 }, (_, n) => padded(n))
  for (const served of ['user 0500 b', 'user 9999', 'user'])
    for (const waitMs of [0, 10_000])
      assert.ok(failuresBefore(failing, served, waitMs) <= failing.length, `${served} ${waitMs}`)
})

test('users who come while others fail delay an owner by one turn each', () => {
  const owners = createQuoteOwners(() => 0)
  const users = ['a', 'z']
  let asked = 0
  for (; owners.inTurn(quote, users)[0] !== 'z'; asked += 1) {
    owners.failed(quote, owners.inTurn(quote, users)[0]!, 0)
    if (asked < 500) users.push(`b ${String(asked).padStart(4, '0')}`)
  }
  assert.equal(asked, 501)
})
