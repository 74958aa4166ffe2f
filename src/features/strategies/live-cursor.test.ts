import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fillsFromMs } from './live-cursor.ts'

const hourMs = 3_600_000
const nowMs = 1_000 * hourMs

test('fills of an outage are looked for until the record has been compared with the venue since', () => {
  const before = { fills_from_ms: nowMs - 30 * hourMs }
  const from = (comparedMs: number) => fillsFromMs(before, { nowMs, comparedMs })
  assert.equal(from(0), before.fills_from_ms, 'the record was never compared')
  assert.equal(from(nowMs - 24 * hourMs), before.fills_from_ms, 'the record ends with the outage')
  assert.equal(from(nowMs), nowMs - 6 * hourMs)
  assert.equal(from(nowMs + hourMs), nowMs - 6 * hourMs, 'the clock of the venue is ahead')
  assert.equal(fillsFromMs({ fills_from_ms: nowMs }, { nowMs, comparedMs: nowMs }), nowMs)
})
