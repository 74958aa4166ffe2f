import assert from 'node:assert/strict'
import { test } from 'node:test'
import { localDayEnds } from './local-days.ts'

const hours = (zone: string, from: string, to: string) =>
  localDayEnds(zone, Date.parse(from), Date.parse(to)).map((ms) => new Date(ms).toISOString().slice(0, 16))

test('the end of a local day is where the next one begins, also on days of 23 and 25 hours', () => {
  assert.deepEqual(hours('UTC', '2026-03-07T00:00Z', '2026-03-08T12:00Z'), [
    '2026-03-08T00:00',
    '2026-03-09T00:00',
  ])
  assert.deepEqual(hours('America/New_York', '2026-03-08T00:00Z', '2026-03-09T12:00Z'), [
    '2026-03-08T05:00',
    '2026-03-09T04:00',
    '2026-03-10T04:00',
  ])
  assert.deepEqual(hours('America/New_York', '2026-11-01T05:00Z', '2026-11-01T06:00Z'), ['2026-11-02T05:00'])
  // Cairo skips the first hour of a day, and Apia once skipped a whole day.
  assert.deepEqual(hours('Africa/Cairo', '2026-04-23T12:00Z', '2026-04-23T13:00Z'), ['2026-04-23T22:00'])
  assert.deepEqual(
    hours('Pacific/Apia', '2011-12-29T12:00Z', '2011-12-31T11:00Z'),
    ['2011-12-30T10:00', '2011-12-31T10:00', '2012-01-01T10:00'].slice(0, 3),
  )
})
