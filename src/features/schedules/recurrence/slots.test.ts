import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { minuteOf } from './calendar-to-timetable.ts'
import { type Calendar, weekdays } from './calendar-types.ts'
import { nextSlot, slotsBetween } from './slots.ts'

/**
 * On the days on which clocks change, schedulers run a time twice or never: node-red cron-plus (#108), friday (#1591), and
 * croner, by which `0,30 1` runs four times and `15,45 2` not at all.
 */

const newYork = 'America/New_York'

function slots(calendar: Calendar, after: string, count: number): string[] {
  const found: string[] = []
  for (const slot of slotsBetween(calendar, new Date(after))) {
    found.push(slot.toISOString().replace(':00.000', ''))
    if (found.length === count) break
  }
  return found
}
const daily = (timezone: string, ...times: string[]): Calendar => ({ type: 'calendar', times, timezone })
const cron = (timezone: string, text: string): Calendar => ({ type: 'cron', cron: text, timezone })

test('named times of a repeated hour run once, at their first occurrence', () => {
  const expected = ['2026-11-01T05:00Z', '2026-11-01T05:30Z', '2026-11-02T06:00Z']
  assert.deepEqual(slots(daily(newYork, '01:00', '01:30'), '2026-11-01T04:30:00Z', 3), expected)
  assert.deepEqual(slots(cron(newYork, '0,30 1 * * *'), '2026-11-01T04:30:00Z', 3), expected)
})

test('a search from within the repeated hour does not find its times again', () => {
  for (const after of ['05:30', '05:45', '06:10', '06:29'])
    assert.deepEqual(slots(daily(newYork, '01:30'), `2026-11-01T${after}:00Z`, 1), ['2026-11-02T06:30Z'])
})

test('named times of a gap run at the first valid instant, and equal instants are one slot', () => {
  const expected = ['2026-03-08T07:00Z', '2026-03-09T06:15Z', '2026-03-09T06:45Z']
  assert.deepEqual(slots(daily(newYork, '02:15', '02:45'), '2026-03-07T12:00:00Z', 3), expected)
  assert.deepEqual(slots(cron(newYork, '15,45 2 * * *'), '2026-03-07T12:00:00Z', 3), expected)
  assert.deepEqual(slots(daily(newYork, '02:30', '03:00'), '2026-03-07T12:00:00Z', 2), [
    '2026-03-08T07:00Z',
    '2026-03-09T06:30Z',
  ])
})

test('a grid of minutes goes on through the repeated hour, and without a hole over the gap', () => {
  const repeated = slots(cron(newYork, '*/15 1-2 * * *'), '2026-11-01T04:30:00Z', 13)
  assert.equal(repeated.at(0), '2026-11-01T05:00Z')
  assert.equal(repeated.at(11), '2026-11-01T07:45Z')
  assert.equal(repeated.at(12), '2026-11-02T06:00Z')
  for (const [from, to] of [
    ['2026-03-08T05:00:00Z', '2026-03-08T09:00:00Z'],
    ['2026-11-01T04:00:00Z', '2026-11-01T08:00:00Z'],
  ] as const) {
    const found = [...slotsBetween(cron(newYork, '*/15 * * * *'), new Date(from), new Date(to))]
    assert.equal(found.length, 16, from)
    const hourly = [...slotsBetween(cron(newYork, '0 * * * *'), new Date(from), new Date(to))]
    assert.equal(hourly.length, 4, from)
  }
})

test('a window names the hours of a grid, and the last of them belongs to it', () => {
  const calendar: Calendar = {
    type: 'interval',
    every_seconds: 2_400,
    from: '09:00',
    to: '17:00',
    days: ['mon'],
    timezone: 'Europe/Berlin',
  }
  const found = slots(calendar, '2026-12-06T00:00:00Z', 14)
  assert.equal(found.at(0), '2026-12-07T08:00Z')
  assert.equal(found.at(1), '2026-12-07T08:40Z')
  assert.equal(found.at(12), '2026-12-07T16:00Z')
  assert.equal(found.at(13), '2026-12-14T08:00Z')
})

test('Cairo skips midnight, and Lord Howe half an hour', () => {
  assert.deepEqual(slots(daily('Africa/Cairo', '00:00'), '2026-04-22T12:00:00Z', 3), [
    '2026-04-22T22:00Z',
    '2026-04-23T22:00Z',
    '2026-04-24T21:00Z',
  ])
  assert.deepEqual(slots(daily('Australia/Lord_Howe', '02:15'), '2026-10-02T12:00:00Z', 3), [
    '2026-10-02T15:45Z',
    '2026-10-03T15:30Z',
    '2026-10-04T15:15Z',
  ])
})

test('a day that a zone leaves out has no slot', () => {
  assert.deepEqual(slots(daily('Pacific/Apia', '09:00'), '2011-12-29T00:00:00Z', 2), [
    '2011-12-29T19:00Z',
    '2011-12-30T19:00Z',
  ])
})

test('29 February comes in leap years, over a century without one too', () => {
  const leapDay: Calendar = {
    type: 'calendar',
    times: ['09:00'],
    month_days: [29],
    months: [2],
    timezone: 'UTC',
  }
  assert.deepEqual(slots(leapDay, '2026-11-01T00:00:00Z', 2), ['2028-02-29T09:00Z', '2032-02-29T09:00Z'])
  assert.deepEqual(slots(leapDay, '2096-03-01T00:00:00Z', 1), ['2104-02-29T09:00Z'])
})

test('the 31st is the last day of shorter months, and in cron it is left out of them', () => {
  const calendar: Calendar = { type: 'calendar', times: ['09:00'], month_days: [31], timezone: 'UTC' }
  const days = (found: string[]) => found.map((slot) => slot.slice(0, 10))
  assert.deepEqual(days(slots(calendar, '2027-01-01T00:00:00Z', 4)), [
    '2027-01-31',
    '2027-02-28',
    '2027-03-31',
    '2027-04-30',
  ])
  assert.deepEqual(days(slots(cron('UTC', '0 9 31 * *'), '2027-01-01T00:00:00Z', 3)), [
    '2027-01-31',
    '2027-03-31',
    '2027-05-31',
  ])
  assert.deepEqual(days(slots(cron('UTC', '0 9 1,l * *'), '2027-02-02T00:00:00Z', 3)), [
    '2027-02-28',
    '2027-03-01',
    '2027-03-31',
  ])
})

test('the first and the last such weekday of a month are one day each', () => {
  const days = (text: string) =>
    slots(cron('UTC', text), '2026-07-01T12:00:00Z', 3).map((slot) => slot.slice(5, 10))
  assert.deepEqual(days('0 9 * * fri#l'), ['07-31', '08-28', '09-25'])
  assert.deepEqual(days('0 9 * * wed#1'), ['08-05', '09-02', '10-07'])
  assert.deepEqual(days('0 9 * * wed#4'), ['07-22', '08-26', '09-23'])
})

test('an interval counts from its start and not from the last run', () => {
  const interval: Calendar = {
    type: 'interval',
    every_seconds: 90,
    starts_at: '2026-11-01T05:00:00.000Z',
    timezone: newYork,
  }
  assert.deepEqual(
    [...slotsBetween(interval, new Date('2026-11-01T00:00:00Z'), new Date('2026-11-01T05:03:00Z'))].map(
      Number,
    ),
    [0, 90_000, 180_000].map((ms) => Date.parse('2026-11-01T05:00:00Z') + ms),
  )
  assert.equal(
    nextSlot(interval, new Date('2027-11-01T05:00:00Z'))?.toISOString(),
    '2027-11-01T05:01:30.000Z',
  )
})

test('no slot is before the start or after the end, and both belong to the schedule', () => {
  const calendar: Calendar = {
    ...daily('UTC', '09:00'),
    starts_at: '2026-12-01T09:00:00.000Z',
    ends_at: '2026-12-03T09:00:00.000Z',
  }
  assert.deepEqual(slots(calendar, '2026-01-01T00:00:00Z', 9), [
    '2026-12-01T09:00Z',
    '2026-12-02T09:00Z',
    '2026-12-03T09:00Z',
  ])
  assert.equal(nextSlot(calendar, new Date('2026-12-03T09:00:00Z')), undefined)
})

test('a schedule of one time runs once', () => {
  const once: Calendar = { type: 'once', at: '2026-12-24T17:00:00.000Z', timezone: 'UTC' }
  assert.equal(nextSlot(once, new Date('2026-12-24T16:59:59.999Z'))?.toISOString(), once.at)
  assert.equal(nextSlot(once, new Date(once.at)), undefined)
})

/** Zones, and instants at which each changes its clock. */
const changes = [
  { zone: newYork, at: '2026-03-08T07:00:00Z' },
  { zone: newYork, at: '2026-11-01T06:00:00Z' },
  { zone: 'Africa/Cairo', at: '2026-04-23T22:00:00Z' },
  { zone: 'Africa/Cairo', at: '2026-10-29T21:00:00Z' },
  { zone: 'Australia/Lord_Howe', at: '2026-10-03T15:30:00Z' },
  { zone: 'Australia/Lord_Howe', at: '2026-04-04T15:00:00Z' },
  { zone: 'Pacific/Apia', at: '2011-12-30T10:00:00Z' },
  { zone: 'Antarctica/Troll', at: '2026-03-29T01:00:00Z' },
  { zone: 'America/Havana', at: '2026-11-01T05:00:00Z' },
  { zone: 'Asia/Beirut', at: '2026-10-24T21:00:00Z' },
  { zone: 'America/Nuuk', at: '2026-03-29T01:00:00Z' },
  { zone: 'Asia/Kathmandu', at: '2026-06-01T00:00:00Z' },
  { zone: 'UTC', at: '2028-02-28T12:00:00Z' },
]

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const formatters = new Map<string, Intl.DateTimeFormat>()
/** The local clock by another format than that of the code under test. */
function localClock(zone: string, at: number): number {
  const formatter =
    formatters.get(zone) ??
    new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' })
  formatters.set(zone, formatter)
  return Date.parse(`${formatter.format(at).replace(' ', 'T')}Z`)
}

const lastDay = (date: Date): number =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()

type Days = {
  days?: (typeof weekdays)[number][]
  month_days?: number[]
  nth?: { n: number; day: (typeof weekdays)[number] }
}

function isNamedDay({ days, month_days, nth }: Days, local: number): boolean {
  const date = new Date(local)
  const weekday = weekdays[date.getUTCDay()]!
  if (days) return days.includes(weekday)
  if (month_days)
    return month_days.some(
      (day) => date.getUTCDate() === (day === -1 ? lastDay(date) : Math.min(day, lastDay(date))),
    )
  if (!nth) return true
  const same = [1, 2, 3, 4, 5]
    .map(
      (week) =>
        ((weekdays.indexOf(nth.day) -
          new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)).getUTCDay() +
          7) %
          7) +
        1 +
        (week - 1) * 7,
    )
    .filter((day) => day <= lastDay(date))
  return date.getUTCDate() === (nth.n === -1 ? same.at(-1) : same[nth.n - 1])
}

/** The slots within some days of an instant, by a look at the local clock in each minute. */
function scannedSlots(calendar: Calendar & Days, afterMs: number, days: number): number[] {
  if (calendar.type !== 'calendar' && calendar.type !== 'interval') throw new Error('it is not scanned')
  const isGrid = calendar.type === 'interval'
  const first = Math.floor((afterMs - 2 * dayMs) / minuteMs) * minuteMs
  const clock: number[] = []
  for (let at = first; at <= afterMs + (days + 2) * dayMs; at += minuteMs)
    clock.push(localClock(calendar.timezone, at))
  const existing = new Set(clock.map((local) => Math.floor(local / dayMs)))
  const minutes = new Set<number>()
  if (calendar.type === 'calendar') for (const time of calendar.times) minutes.add(minuteOf(time))
  if (calendar.type === 'interval' && 'from' in calendar)
    for (
      let minute = minuteOf(calendar.from);
      minute <= minuteOf(calendar.to);
      minute += calendar.every_seconds / 60
    )
      minutes.add(minute)
  const isNamed = (local: number) =>
    minutes.has((local % dayMs) / minuteMs) &&
    existing.has(Math.floor(local / dayMs)) &&
    isNamedDay(calendar, local)
  const slots: number[] = []
  let shown = clock[0]!
  for (const [at, local] of clock.entries()) {
    const instant = first + at * minuteMs
    let isSlot = isGrid && isNamed(local)
    // A named time comes when the clock shows it, or jumps over it.
    if (!isGrid)
      for (let passed = shown + minuteMs; passed <= local; passed += minuteMs) isSlot ||= isNamed(passed)
    shown = Math.max(shown, local)
    if (isSlot && instant > afterMs && instant <= afterMs + days * dayMs) slots.push(instant)
  }
  return slots
}

const timeOf = (minute: number) =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`
const time = fc
  .oneof(fc.integer({ min: 0, max: 4 * 60 }), fc.integer({ min: 0, max: 24 * 60 - 1 }))
  .map(timeOf)
const day = fc.constantFrom(...weekdays)
const days: fc.Arbitrary<Days> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  { weight: 2, arbitrary: fc.record({ days: fc.uniqueArray(day, { minLength: 1 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      month_days: fc.uniqueArray(fc.constantFrom(-1, 1, 8, 29, 30, 31), { minLength: 1 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ nth: fc.record({ n: fc.constantFrom(-1, 1, 4), day }) }) },
)
const timed = fc.record({
  times: fc.uniqueArray(time, { minLength: 1, maxLength: 4 }).map((times) => times.sort()),
})
const grid = fc
  .record({
    step: fc.integer({ min: 1, max: 100 }),
    ends: fc.uniqueArray(time, { minLength: 2, maxLength: 2 }),
  })
  .map(({ step, ends }) => {
    const [from, to] = ends.sort() as [string, string]
    return { every_seconds: step * 60, from, to }
  })

test('the slots are those of a scan of each minute, strictly increasing and never early', () => {
  const calendar = fc.oneof(
    fc.tuple(timed, days).map(([times, named]) => ({ type: 'calendar' as const, ...times, ...named })),
    fc.tuple(grid, days).map(([window, named]) => ({ type: 'interval' as const, ...window, ...named })),
  )
  const start = fc.record({
    change: fc.constantFrom(...changes),
    ahead: fc.integer({ min: -36 * 60, max: 20 * 60 }),
  })
  fc.assert(
    fc.property(calendar, start, fc.integer({ min: 0, max: 59_999 }), (fields, { change, ahead }, ms) => {
      const afterMs = Date.parse(change.at) + ahead * minuteMs + ms
      const each = { ...fields, timezone: change.zone }
      const scanned = scannedSlots(each, afterMs, 3)
      const found = [...slotsBetween(each, new Date(afterMs), new Date(afterMs + 3 * dayMs))].map(Number)
      assert.deepEqual(found, scanned)
      assert.equal(nextSlot(each, new Date(afterMs))?.getTime() === scanned[0], scanned.length > 0)
    }),
    { numRuns: 60 },
  )
})
