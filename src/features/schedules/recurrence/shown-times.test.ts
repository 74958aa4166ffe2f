import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Calendar } from './calendar-types.ts'
import { describe, nextRuns } from './describe.ts'
import { comingRuns, shownDescription } from './shown-times.ts'

const daily: Calendar = { type: 'calendar', times: ['09:00'], timezone: 'Europe/Berlin' }

test('coming runs are kept until the first of them, and an equal calendar has the same', () => {
  const at = (text: string) => comingRuns({ ...daily }, new Date(text))
  const runs = at('2026-12-01T07:00:00Z')
  assert.equal(runs[0]?.at, '2026-12-01T08:00:00.000Z')
  assert.equal(at('2026-12-01T07:59:59.999Z'), runs)
  for (const text of ['2026-12-01T08:00:00Z', '2026-12-05T12:00:00Z', '2026-11-30T07:00:00Z'])
    assert.deepEqual(at(text), nextRuns(daily, new Date(text), 3), text)
})

test('a calendar that is over stays over, and its description is kept', () => {
  const once: Calendar = { type: 'once', at: '2026-12-01T08:00:00.000Z', timezone: 'UTC' }
  assert.equal(comingRuns(once, new Date('2026-12-01T07:00:00Z')).length, 1)
  assert.deepEqual(comingRuns(once, new Date('2026-12-01T08:00:00Z')), [])
  assert.deepEqual(comingRuns(once, new Date('2027-12-01T08:00:00Z')), [])
  assert.equal(comingRuns(once, new Date('2026-12-01T07:30:00Z')).length, 1)
  assert.equal(shownDescription(once), describe(once))
})
