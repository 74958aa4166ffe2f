import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Calendar, ScheduleFields } from './calendar-types.ts'
import { describe } from './describe.ts'
import { readSchedule } from './read-schedule.ts'
import { runsADay, shortDescriptionOf } from './short-description.ts'

const now = new Date('2026-11-28T10:17:43.512Z')
const hours = Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, '0')}:00`)
const days = (count: number) => Array.from({ length: count }, (_, at) => at + 1)

function read(input: string | ScheduleFields): Calendar {
  const reading = readSchedule(input, { now })
  assert.ok('calendar' in reading, JSON.stringify(reading))
  return reading.calendar
}

test('a long description counts its times and days, and a short one stays', () => {
  const each = read('every Monday at 9')
  assert.equal(shortDescriptionOf(each), describe(each))
  assert.equal(
    shortDescriptionOf(read({ type: 'calendar', times: hours, month_days: days(30) })),
    '24 times a day (00:00 to 23:00) on 30 days of each month, UTC',
  )
  assert.equal(
    shortDescriptionOf(read({ type: 'calendar', times: ['09:00'], month_days: days(30), months: days(11) })),
    'At 09:00 on 30 days of each month in 11 months (January to November), UTC',
  )
})

test('no short description is longer than the page shows', () => {
  const bounds = {
    timezone: 'America/Argentina/Buenos_Aires',
    starts_at: '2026-12-01T10:00:15Z',
    ends_at: '2099-12-01T10:00:15Z',
  }
  for (const named of [
    { days: ['tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const },
    { days: ['wed', 'thu', 'sat'] as const },
    { month_days: days(31) },
    { month_days: [29, 30, 31] },
    { nth: { n: 2, day: 'wed' as const } },
  ])
    for (const months of [undefined, [2, 9, 12], days(11)])
      for (const times of [hours, hours.slice(0, 3)]) {
        const fields = { type: 'calendar', times, ...named, ...(months && { months }), ...bounds }
        const text = shortDescriptionOf(read(fields as ScheduleFields))
        assert.ok(text.length <= 200, `${text.length}: ${text}`)
        assert.ok(text.endsWith(bounds.timezone))
      }
})

test('the runs of a day are counted', () => {
  assert.equal(runsADay(read('tomorrow at 9')), 1)
  assert.equal(runsADay(read('every 3 days')), 1)
  assert.equal(runsADay(read('every 7 hours')), 4)
  assert.equal(runsADay(read('every 15 minutes from 9 to 17 on weekdays')), 33)
  assert.equal(runsADay(read({ type: 'calendar', times: hours })), 24)
})
