import assert from 'node:assert/strict'
import { test } from 'node:test'
import { periodText, rangeOf } from './times.ts'

const nowMs = Date.parse('2026-11-26T12:00:00Z')

test('one period has one text, whatever its unit was', () => {
  const period = (value: string, span: 'h' | 'd' | 'w' | 'mo' | 'y') =>
    periodText({ unit: 'span', value, span })
  assert.equal(period('24', 'h'), '1d')
  assert.equal(period('168', 'h'), '1w')
  assert.equal(period('7', 'd'), '1w')
  assert.equal(period('30', 'd'), '1mo')
  assert.equal(period('6', 'h'), '6h')
  assert.equal(period('3', 'mo'), '3mo')
  assert.equal(period('0', 'd'), undefined)
  assert.equal(period('1.5', 'd'), undefined)
})

test('a period covers so much time before now, in UTC', () => {
  assert.deepEqual(rangeOf('1w', nowMs), { fromMs: Date.parse('2026-11-19T12:00:00Z'), toMs: nowMs })
  assert.deepEqual(rangeOf('yesterday', nowMs), {
    fromMs: Date.parse('2026-11-25T00:00:00Z'),
    toMs: Date.parse('2026-11-26T00:00:00Z'),
  })
  assert.deepEqual(rangeOf('since:2026-06-01', nowMs), {
    fromMs: Date.parse('2026-06-01T00:00:00Z'),
    toMs: nowMs,
  })
  assert.equal(rangeOf('all', nowMs), undefined)
})
