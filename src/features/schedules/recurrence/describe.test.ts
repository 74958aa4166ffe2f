import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Calendar, type ScheduleFields, weekdays } from './calendar-types.ts'
import { describe, nextRuns } from './describe.ts'
import { readSchedule } from './read-schedule.ts'
import { slotsBetween } from './slots.ts'

const now = new Date('2026-11-28T10:17:43.512Z')

function read(input: string | ScheduleFields, timezone = 'UTC'): Calendar {
  const reading = readSchedule(input, { now, timezone })
  assert.ok('calendar' in reading, JSON.stringify([input, reading]))
  return reading.calendar
}

test('a description says days, times, zone and what happens in shorter months', () => {
  const texts: Record<string, string> = {
    'weekdays at 9:30 ET': 'Every weekday at 09:30, America/New_York',
    'every 4 hours': 'Every 4 hours, counted from 2026-11-28 10:17, UTC',
    'every 24 hours': 'Every 24 hours, counted from 2026-11-28 10:17, UTC',
    'on the 31st at 8': 'On the 31st of every month (or the last day of a shorter month) at 08:00, UTC',
    '0 8 31 * *': 'On the 31st of every month (left out in months without it) at 08:00, UTC',
    'every year on 29 February at 8': 'Every year on the 29th of February (only in leap years) at 08:00, UTC',
    'on the last Friday of the month at 8': 'On the last Friday of every month at 08:00, UTC',
    'tomorrow at 8': 'Once on 2026-11-29 08:00, UTC',
    'every 15 min from 9 to 17 on weekdays': 'Every 15 minutes from 09:00 to 17:00, every weekday, UTC',
    '*/15 9-16 * * 1-5': 'Every 15 minutes from 09:00 to 16:45, every weekday, UTC',
    '5,7 * * * *': 'At the minutes 5 and 7 of every hour, UTC',
    '0 9,17 * * 0,6': 'Every Saturday and Sunday at 09:00 and 17:00, UTC',
  }
  for (const [input, text] of Object.entries(texts)) assert.equal(describe(read(input)), text)
})

test('the remark about leap days reads back beside other days', () => {
  const fields = { type: 'calendar' as const, times: ['09:00'], month_days: [28, 29], months: [2] }
  const calendar = read(fields)
  assert.match(describe(calendar), /the 29th only in leap years/)
  assert.deepEqual(read(describe(calendar)), calendar)
})

test('the next runs have both clocks', () => {
  assert.deepEqual(nextRuns(read('daily at 1:30 New York'), new Date('2026-10-31T12:00:00Z'), 2), [
    { at: '2026-11-01T05:30:00.000Z', local: 'Sunday 2026-11-01 01:30 America/New_York (UTC-04:00)' },
    { at: '2026-11-02T06:30:00.000Z', local: 'Monday 2026-11-02 01:30 America/New_York (UTC-05:00)' },
  ])
  assert.deepEqual(nextRuns(read('tomorrow at 8'), new Date('2026-11-29T08:00:00Z'), 3), [])
})

const time = fc
  .record({ hour: fc.integer({ min: 0, max: 23 }), minute: fc.integer({ min: 0, max: 59 }) })
  .map(({ hour, minute }) => `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`)
const timezone = fc.constantFrom(
  'UTC',
  'America/New_York',
  'Europe/Berlin',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'America/Argentina/Buenos_Aires',
  'America/Port-au-Prince',
)
const day = fc.constantFrom(...weekdays)
const months = fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 12 })
const monthDay = fc.oneof(fc.integer({ min: 1, max: 31 }), fc.constant(-1))
const days = fc
  .record(
    {
      named: fc.oneof(
        fc.record({ days: fc.uniqueArray(day, { minLength: 1 }) }),
        fc.record({ month_days: fc.uniqueArray(monthDay, { minLength: 1, maxLength: 5 }) }),
        fc.record({ nth: fc.record({ n: fc.constantFrom(-1, 1, 2, 3, 4), day }) }),
      ),
      months,
    },
    { requiredKeys: [] },
  )
  .map(({ named, months: some }) => ({ ...named, ...(some && { months: some }) }))
const instant = fc
  .integer({ min: 1, max: 40 * 365 * 24 * 3_600 })
  .map((seconds) => new Date(Date.parse('2026-11-29T00:00:00Z') + seconds * 1_000).toISOString())
const bounds = fc.record(
  { starts_at: instant, ends_at: fc.constantFrom('2090-01-01T00:00:00.000Z', '2089-11-06T00:30:15.000Z') },
  { requiredKeys: [] },
)
const fields: fc.Arbitrary<ScheduleFields> = fc
  .oneof(
    fc.record({ type: fc.constant('once' as const), at: instant, timezone }),
    fc.tuple(
      fc.record({
        type: fc.constant('interval' as const),
        every_seconds: fc.integer({ min: 60, max: 365 * 24 * 3_600 }),
        timezone,
      }),
      bounds,
    ),
    fc.tuple(
      fc.record({
        type: fc.constant('interval' as const),
        every_seconds: fc.integer({ min: 1, max: 1_440 }).map((minutes) => minutes * 60),
        timezone,
      }),
      fc
        .uniqueArray(time, { minLength: 2, maxLength: 2 })
        .map((ends) => ({ from: ends.sort()[0]!, to: ends[1]! })),
      days,
      bounds,
    ),
    fc.tuple(
      fc.record({
        type: fc.constant('calendar' as const),
        times: fc.uniqueArray(time, { minLength: 1, maxLength: 24 }),
        timezone,
      }),
      days,
      bounds,
    ),
  )
  .map((parts) => (Array.isArray(parts) ? Object.assign({}, ...parts) : parts))

test('a description is read as the calendar that it describes', () => {
  fc.assert(
    fc.property(fields, (each) => {
      const reading = readSchedule(each, { now })
      if ('refusal' in reading) {
        assert.ok(['never_fires', 'least_interval'].includes(reading.refusal.type), reading.refusal.msg)
        return
      }
      const { calendar } = reading
      const text = describe(calendar)
      assert.deepEqual(read(text, 'Asia/Tokyo'), calendar, text)
      assert.deepEqual(read(JSON.parse(JSON.stringify(calendar))), calendar)
    }),
    { numRuns: 300 },
  )
})

test('the description of a cron text has its slots', () => {
  const part = (max: number) => fc.constantFrom('*', '0', '*/2', `1,${max}`, `2-${max - 1}`)
  const hour = fc.constantFrom('*', '0', '9', '*/4', '9-17', '1,2')
  const minute = fc.constantFrom('*/15', '*/30', '0', '30', '0,30', '15,45', '*')
  const weekday = fc.constantFrom('*', '1-5', 'mon', '0,6', 'fri#l', 'mon#1')
  const month = fc.oneof(
    fc.constant('*'),
    part(12).filter((text) => text !== '0'),
  )
  fc.assert(
    fc.property(minute, hour, weekday, month, (m, h, w, mo) => {
      const calendar = read({ type: 'cron', cron: `${m} ${h} * ${mo} ${w}`, timezone: 'America/New_York' })
      const text = describe(calendar)
      const reading = readSchedule(text, { now })
      // Minutes without one rhythm have no phrase.
      if ('refusal' in reading) return assert.match(text, /^At the minutes /)
      const [from, until] = [new Date('2026-10-30T00:00:00Z'), new Date('2026-11-03T00:00:00Z')]
      assert.deepEqual(
        [...slotsBetween(reading.calendar, from, until)],
        [...slotsBetween(calendar, from, until)],
      )
    }),
    { numRuns: 100 },
  )
})

const words = fc.constantFrom(
  ...'every each on at from to and , the of in until starting once twice daily weekly day week month year hours minutes 15 9 2 9am 17:00 noon 31st first last other Monday Mondays Friday weekdays mon-fri January December 24 2026-12-24 tomorrow next morning evening New York ET Berlin time between'.split(
    ' ',
  ),
)

test('any words are refused, or read as a calendar that its description gives again', () => {
  let count = 0
  fc.assert(
    fc.property(fc.array(words, { minLength: 1, maxLength: 8 }), (list) => {
      const reading = readSchedule(list.join(' '), { now })
      if ('refusal' in reading) return
      count++
      assert.deepEqual(read(describe(reading.calendar)), reading.calendar, list.join(' '))
    }),
    { numRuns: 1_000 },
  )
  assert.ok(count > 0)
})

test('no text makes the reading fail', () => {
  const text = fc.oneof(fc.string({ maxLength: 60 }), fc.string({ unit: 'binary', maxLength: 30 }))
  fc.assert(
    fc.property(text, text, (phrase, timezone) => {
      readSchedule(phrase, { now, timezone })
      readSchedule({ type: 'cron', cron: phrase }, { now })
    }),
  )
})
