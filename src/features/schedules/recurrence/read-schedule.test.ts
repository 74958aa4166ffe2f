import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Calendar, Refusal, ScheduleFields } from './calendar-types.ts'
import { type ReadOptions, readSchedule } from './read-schedule.ts'
import { nextSlot } from './slots.ts'
import { zoneAliases } from './zone-aliases.ts'
import { findZone } from './zone-names.ts'

const now = new Date('2026-11-28T10:17:43.512Z')
const startOfMinute = '2026-11-28T10:17:00.000Z'

function read(input: string | ScheduleFields, options: Partial<ReadOptions> = {}): Calendar {
  const reading = readSchedule(input, { now, ...options })
  assert.ok('calendar' in reading, JSON.stringify(reading))
  return reading.calendar
}
function refused(input: string | ScheduleFields, options: Partial<ReadOptions> = {}): Refusal {
  const reading = readSchedule(input, { now, ...options })
  assert.ok('refusal' in reading, JSON.stringify(reading))
  assert.equal(reading.refusal.ctx.examples.length, 3)
  return reading.refusal
}

const workdays = ['mon', 'tue', 'wed', 'thu', 'fri']
const utc = { timezone: 'UTC' }
const newYork = { timezone: 'America/New_York' }
const times = (...list: string[]) => ({ type: 'calendar', times: list })

const phrases: Record<string, unknown> = {
  'every Monday at nine New York time': { ...times('09:00'), days: ['mon'], ...newYork },
  'weekdays at 9:30 ET': { ...times('09:30'), days: workdays, ...newYork },
  'every weekday at 9:30 a.m. Eastern time': { ...times('09:30'), days: workdays, ...newYork },
  'every 4 hours': { type: 'interval', every_seconds: 14_400, starts_at: startOfMinute, ...utc },
  'every four hours': { type: 'interval', every_seconds: 14_400, starts_at: startOfMinute, ...utc },
  'every hour': { type: 'interval', every_seconds: 3_600, starts_at: startOfMinute, ...utc },
  'every other day': { type: 'interval', every_seconds: 172_800, starts_at: startOfMinute, ...utc },
  'every 4 hours starting tomorrow at 9 Berlin': {
    type: 'interval',
    every_seconds: 14_400,
    starts_at: '2026-11-29T08:00:00.000Z',
    timezone: 'Europe/Berlin',
  },
  'daily at 18:00 Berlin': { ...times('18:00'), timezone: 'Europe/Berlin' },
  daily: { ...times('10:17'), ...utc },
  weekly: { ...times('10:17'), days: ['sat'], ...utc },
  monthly: { ...times('10:17'), month_days: [28], ...utc },
  'weekly starting 2026-12-01 at 9:00': {
    ...times('09:00'),
    days: ['tue'],
    starts_at: '2026-12-01T09:00:00.000Z',
    ...utc,
  },
  'first of the month at noon': { ...times('12:00'), month_days: [1], ...utc },
  'on the 31st at 8': { ...times('08:00'), month_days: [31], ...utc },
  'every 1st and 15th at noon': { ...times('12:00'), month_days: [1, 15], ...utc },
  'on the last day of every month at 17:00': { ...times('17:00'), month_days: [-1], ...utc },
  'on the second Tuesday of each month at 9': { ...times('09:00'), nth: { n: 2, day: 'tue' }, ...utc },
  'every last Friday of the month at 5pm': { ...times('17:00'), nth: { n: -1, day: 'fri' }, ...utc },
  'every 15 minutes from 9 to 17 on weekdays': {
    type: 'interval',
    every_seconds: 900,
    from: '09:00',
    to: '17:00',
    days: workdays,
    ...utc,
  },
  'between 9am and 5pm every 30 min mon-fri': {
    type: 'interval',
    every_seconds: 1_800,
    from: '09:00',
    to: '17:00',
    days: workdays,
    ...utc,
  },
  'twice a day at 1:00 and 1:30': { ...times('01:00', '01:30'), ...utc },
  'three times a day at 8, 12 and 18': { ...times('08:00', '12:00', '18:00'), ...utc },
  'each Tuesday at 7 am and 7 pm': { ...times('07:00', '19:00'), days: ['tue'], ...utc },
  'Every Monday morning at 9': { ...times('09:00'), days: ['mon'], ...utc },
  'every evening at 8 in Paris': { ...times('20:00'), timezone: 'Europe/Paris' },
  'from Monday to Friday at 9': { ...times('09:00'), days: workdays, ...utc },
  'every Saturday and Sunday at midnight': { ...times('00:00'), days: ['sat', 'sun'], ...utc },
  'every year on 29 February at noon': { ...times('12:00'), month_days: [29], months: [2], ...utc },
  'every 24 December at 18:00': { ...times('18:00'), month_days: [24], months: [12], ...utc },
  'every Monday in January and July at 9': { ...times('09:00'), days: ['mon'], months: [1, 7], ...utc },
  'daily at 9 until 31 December': { ...times('09:00'), ends_at: '2026-12-31T23:59:59.000Z', ...utc },
  'tomorrow at 7am': { type: 'once', at: '2026-11-29T07:00:00.000Z', ...utc },
  'once on 2026-12-24 at 18:00 Europe/Berlin': {
    type: 'once',
    at: '2026-12-24T17:00:00.000Z',
    timezone: 'Europe/Berlin',
  },
  'December 24 at 18:00': { type: 'once', at: '2026-12-24T18:00:00.000Z', ...utc },
  'on the 29th of February at noon': { type: 'once', at: '2028-02-29T12:00:00.000Z', ...utc },
  'next friday 14:00 berlin': { type: 'once', at: '2026-12-04T13:00:00.000Z', timezone: 'Europe/Berlin' },
  'in 2 hours': { type: 'once', at: '2026-11-28T12:17:44.000Z', ...utc },
  '2026-12-24T18:00:00+01:00': { type: 'once', at: '2026-12-24T17:00:00.000Z', ...utc },
  '0 9 * * MON': { type: 'cron', cron: '0 9 * * mon', ...utc },
}

test('phrases of every day are calendars', () => {
  for (const [phrase, expected] of Object.entries(phrases)) assert.deepEqual(read(phrase), expected, phrase)
})

test('a calendar is read as itself', () => {
  for (const phrase of Object.keys(phrases)) {
    const calendar = read(phrase)
    assert.deepEqual(read(JSON.parse(JSON.stringify(calendar))), calendar, phrase)
  }
})

test('what a phrase leaves open is refused with what was not read', () => {
  const unread = (phrase: string) => refused(phrase).ctx.unread
  assert.deepEqual(unread('every foo at 9'), ['every', 'foo'])
  assert.deepEqual(unread('every Monday at 9 except holidays'), ['except', 'holidays'])
  for (const phrase of [
    '',
    '9am',
    '@daily',
    'twice a day at 9',
    'at 9 and 10 pm daily',
    'every second day at 9',
    'every second Monday at 9',
    'every day between 9 and 17',
    'every 15 minutes at 9',
    'every Monday',
    'every 3 months',
    'on 999999999 December at 9am',
    'every day at 9 starting 999999999 December',
    'every day at 9 until 0 December',
    'in 999999999 weeks',
    'in 2 hours on weekdays',
    'once on Monday in January at 9',
    'on Friday the 13th at 9',
    'every day at 25:00',
    'every day at 13:00 in the morning',
    'on the second Tuesday of March at 9',
    'on the first weekday of the month at 9',
    `every day at 9 ${'and 10 '.repeat(80)}`,
  ])
    assert.equal(refused(phrase).type, 'not_understood', phrase)
})

test('one weekday without "every" has two readings', () => {
  assert.deepEqual(refused('on Monday at 9').ctx.suggestions, [
    'every Monday at 09:00',
    'next Monday at 09:00',
  ])
})

test('abbreviations of New York are its time, and it is said', () => {
  for (const name of ['ET', 'EST', 'EDT', 'EST5EDT']) {
    const reading = readSchedule('daily at 9', { now, timezone: name })
    assert.ok('calendar' in reading)
    assert.equal(reading.calendar.timezone, 'America/New_York')
    assert.deepEqual(reading.notes, [`"${name}" is read as America/New_York`])
  }
  const inner = readSchedule(
    { type: 'cron', cron: '0 9 * * *', timezone: 'us/eastern' },
    { now, timezone: 'UTC' },
  )
  assert.ok('calendar' in inner)
  assert.deepEqual(inner.notes, ['"us/eastern" is read as America/New_York'])
})

test('the zone of a phrase wins over that of the request, and names have their own letters', () => {
  assert.equal(read('daily at 9 Berlin', { timezone: 'Asia/Tokyo' }).timezone, 'Europe/Berlin')
  assert.equal(read('daily at 9', { timezone: 'asia/kolkata' }).timezone, 'Asia/Kolkata')
  assert.equal(read('daily at 9', { timezone: 'europe/berlin' }).timezone, 'Europe/Berlin')
})

test('offsets, zones of several places and unknown zones are refused with names', () => {
  const zone = (timezone: string) => refused('daily at 9', { timezone })
  assert.deepEqual(zone('Europe/Berln').ctx.suggestions, ['Europe/Berlin'])
  assert.equal(zone('Europe/Berln').field, 'timezone')
  assert.deepEqual(zone('IST').ctx.suggestions, ['Asia/Kolkata', 'Asia/Jerusalem', 'Europe/Dublin'])
  assert.ok(zone('Etc/GMT+5').ctx.suggestions?.includes('America/New_York'))
  assert.ok(zone('+01:00').ctx.suggestions?.includes('Europe/Paris'))
  for (const phrase of [
    'daily at 9 UTC+2',
    'daily at 9 GMT+3',
    'daily at 9 Mars/Base',
    'every day at 9 Atlantis time',
  ])
    assert.equal(refused(phrase).type, 'unknown_zone', phrase)
})

test('each alias is a zone, and English words are none', () => {
  const zones = new Set([...Intl.supportedValuesOf('timeZone'), 'UTC'])
  for (const alias of zoneAliases) {
    const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: alias }).resolvedOptions()
    assert.ok(zones.has(timeZone), alias)
  }
  assert.equal(findZone('GB-Eire')?.zone, 'Europe/London')
  for (const word of ['cat', 'net', 'Foo/Bar', 'crypto', '']) assert.equal(findZone(word), undefined, word)
})

test('cron with both kinds of days is refused with both readings, and other fields by their name', () => {
  assert.deepEqual(refused('0 9 13 * 5').ctx.suggestions, ['0 9 13 * *', '0 9 * * 5'])
  assert.match(refused('0 0 9 * * *').msg, /five fields/)
  assert.match(refused('0 24 * * *').msg, /hour/)
  for (const cron of [
    '60 9 * * *',
    '0 9 * * 8',
    '0 9 * 13 *',
    '5-1 9 * * *',
    '*/0 9 * * *',
    '1/5 9 * * *',
    '0 9 0 * *',
  ])
    assert.equal(refused({ type: 'cron', cron }).type, 'not_understood', cron)
  assert.equal(refused('0 9 30 2 *').type, 'never_fires')
})

test('what never comes is refused', () => {
  for (const input of [
    'today at 9',
    '2026-11-28T10:17:43Z',
    'on 30 February at 9',
    'every year on the 31st of April at 9',
    'daily at 9 until 2026-11-27',
  ])
    assert.equal(refused(input).type, 'never_fires', input)
})

test('times beyond the year 2100 are refused by their field', () => {
  const late = '9999-12-31T23:59:59Z'
  const field = (input: string | ScheduleFields, options: Partial<ReadOptions> = {}) => {
    const { type, field, msg } = refused(input, options)
    assert.deepEqual([type, /2100/.test(msg)], ['value_error', true], msg)
    return field
  }
  assert.equal(field({ type: 'once', at: late }), 'schedule.at')
  assert.equal(field('in 52000000 minutes'), 'schedule.at')
  assert.equal(field('on 31 December 9999 at 23:59'), 'schedule.at')
  assert.equal(field({ type: 'calendar', times: ['09:00'], starts_at: late }), 'starts_at')
  assert.equal(field('daily at 9', { startsAt: '2101-01-01T00:00:00Z' }), 'starts_at')
  assert.equal(field('daily at 9', { endsAt: late }), 'ends_at')
  const last = '2100-12-31T23:59:59.000Z'
  assert.equal(read('daily at 9', { endsAt: last }).ends_at, last)
})

test('slots too close to each other are refused with the least distance', () => {
  const least = { minimum: 300, unit: 'seconds' }
  const close = (input: string | ScheduleFields) => refused(input, { secondsMin: 300 })
  for (const input of [
    'every minute',
    '* * * * *',
    'daily at 9:00 and 9:04',
    'daily at 23:58 and 0:01',
    'every 359 minutes on Mondays and Tuesdays',
  ]) {
    const { type, ctx } = close(input)
    assert.equal(type, 'least_interval', input)
    assert.deepEqual({ minimum: ctx.minimum, unit: ctx.unit }, least)
  }
  assert.equal(refused('every 30 seconds').ctx.minimum, 60)
  read('every 5 minutes', { secondsMin: 300 })
  read('every Monday at 23:58 and 0:01', { secondsMin: 300 })
})

test('fields that do not belong together are refused by their place', () => {
  const field = (input: ScheduleFields) => refused(input).field
  assert.equal(field({ type: 'calendar', times: ['9:00'] }), 'schedule.times')
  assert.equal(field({ type: 'calendar', times: [] }), 'schedule.times')
  assert.equal(field({ type: 'calendar', times: ['09:00'], days: ['mon'], month_days: [1] }), 'schedule.days')
  assert.equal(field({ type: 'calendar', times: ['09:00'], month_days: [0] }), 'schedule.month_days')
  assert.equal(field({ type: 'calendar', times: ['09:00'], nth: { n: 5, day: 'mon' } }), 'schedule.nth')
  assert.equal(field({ type: 'interval', every_seconds: 3_600, times: ['09:00'] }), 'schedule.times')
  assert.equal(field({ type: 'interval', every_seconds: 400 * 86_400 }), 'schedule.every_seconds')
  assert.equal(field({ type: 'interval', every_seconds: 900, from: '17:00', to: '09:00' }), 'schedule.to')
  assert.equal(field({ type: 'once', at: '2026-12-24 18:00' }), 'schedule.at')
})

test('fields have one form', () => {
  assert.deepEqual(
    read({
      type: 'calendar',
      times: ['17:00', '09:00', '17:00'],
      days: ['sun', 'tue', 'mon'],
      months: [12, 1, 1],
      timezone: 'UTC',
    }),
    { ...times('09:00', '17:00'), days: ['mon', 'tue', 'sun'], months: [1, 12], ...utc },
  )
  assert.deepEqual(read({ type: 'calendar', times: ['09:00'], month_days: [-1, 15] }), {
    ...times('09:00'),
    month_days: [15, -1],
    ...utc,
  })
  assert.deepEqual(
    read({ type: 'interval', every_seconds: 3_600 }, { startsAt: '2026-12-01T10:00:00.250+01:00' }),
    {
      type: 'interval',
      every_seconds: 3_600,
      starts_at: '2026-12-01T09:00:01.000Z',
      ...utc,
    },
  )
})

const words = fc.constantFrom(
  ...`every each day days daily hourly weekly monthly yearly once twice thrice at from to until through starting
    beginning ending counted between and , . - & ( ) on in the of last first second third next this other today
    tomorrow noon midnight morning afternoon evening time UTC ET EST IST CST New York Berlin tokyo Berlim monday
    mondays fri weekday weekends january february may december month year week hours minutes seconds half an a per
    times am pm o'clock 9am 17:30 12 31 29 2 15 0 32 99 999999999 1970 9999 2026-12-24 2026-02-30 9999-12-31
    2026-12-24T10:00 9999-12-31T23:59-23:59 2026-12-24T10:00Z +3 UTC+3 -5 Europe/Berlin Foo/Bar 1st 31st 99th 15m 4h
    999999999h 3d 1mo twenty two thirty then only leap years or shorter`.split(/\s+/),
)

test('any words and numbers of the grammar are read or refused', () => {
  const zone = fc.constantFrom('UTC', 'America/New_York', 'Pacific/Apia', 'Australia/Lord_Howe')
  fc.assert(
    fc.property(fc.array(words, { minLength: 1, maxLength: 10 }), zone, (list, timezone) => {
      const reading = readSchedule(list.join(' '), { now, timezone, secondsMin: 300 })
      if ('refusal' in reading) return
      assert.ok(nextSlot(reading.calendar, now), list.join(' '))
      assert.deepEqual(read(JSON.parse(JSON.stringify(reading.calendar))), reading.calendar)
    }),
    { numRuns: 1_000 },
  )
  // A day of a month is misread only beside its month, which few random texts name.
  const day = fc.nat({ max: 999_999_999 })
  const place = fc.constantFrom('on', 'every', 'daily at 9 starting', 'daily at 9 until', '')
  const month = fc.constantFrom('December', 'February', 'may')
  fc.assert(
    fc.property(place, day, month, fc.boolean(), (before, number, name, isFirst) => {
      const named = isFirst ? `${number} ${name}` : `${name} ${number}`
      readSchedule(`${before} ${named} at 9am`, { now, timezone: 'America/New_York' })
    }),
    { numRuns: 200 },
  )
})
