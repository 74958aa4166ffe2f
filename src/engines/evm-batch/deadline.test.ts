import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deadlineOf } from './deadline.ts'

const now = { nowSeconds: 1_000, headSeconds: 1_000, ttlSeconds: 300 }
const at = (seconds: number) => new Date(seconds * 1_000)

test('a signature lasts as long as those of its chain, from the later of the two clocks on', () => {
  assert.equal(deadlineOf(now), 1_300)
  assert.equal(deadlineOf({ ...now, headSeconds: 990 }), 1_300)
  assert.equal(deadlineOf({ ...now, headSeconds: 1_050 }), 1_350)
})

test('a signature that is made late ends when one made at once would have ended', () => {
  assert.equal(deadlineOf({ ...now, validUntil: at(1_060) }), 1_060)
  assert.equal(deadlineOf({ ...now, nowSeconds: 1_059, validUntil: at(1_060.9) }), 1_060)
  assert.equal(deadlineOf({ ...now, validUntil: at(9_999) }), 1_300, 'never longer than on its chain')
  assert.equal(deadlineOf({ ...now, headSeconds: 1_050, validUntil: at(1_060) }), 1_110)
})
