import assert from 'node:assert/strict'
import { test } from 'node:test'
import { periodEnd, unusedPart } from './periods.ts'

const seconds = (text: string) => Date.parse(text) / 1_000
const end = (start: string, interval: 'month' | 'year', anchor = start) =>
  new Date(periodEnd(seconds(start), interval, seconds(anchor)) * 1_000).toISOString()

test('a period ends on the day of its anchor, or on the last day of a month that lacks it', () => {
  const anchor = '2027-01-31T12:00:00Z'
  assert.equal(end(anchor, 'month'), '2027-02-28T12:00:00.000Z')
  assert.equal(end('2027-02-28T12:00:00Z', 'month', anchor), '2027-03-31T12:00:00.000Z')
  assert.equal(end('2027-12-31T12:00:00Z', 'month', anchor), '2028-01-31T12:00:00.000Z')
  assert.equal(end('2028-02-29T00:00:00Z', 'year'), '2029-02-28T00:00:00.000Z')
})

test('what is unused of a period is counted by the second, and rounded to the cent', () => {
  const period = { start: 0, end: 300 }
  assert.deepEqual(
    [0, 100, 299, 300, 400].map((now) => unusedPart(1_000, period, now)),
    [1_000, 667, 3, 0, 0],
  )
})
