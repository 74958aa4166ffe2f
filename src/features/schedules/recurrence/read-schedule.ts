import { minuteOf, timetableOf } from './calendar-to-timetable.ts'
import {
  type Bounds,
  type Calendar,
  type CalendarDays,
  isElapsed,
  type ScheduleFields,
  type ScheduleReading,
  weekdays,
} from './calendar-types.ts'
import { cronFields, namesBothDays, readCron, type Timetable } from './cron.ts'
import { daysOfMonth, nextDay } from './day-rule.ts'
import { monthNames } from './english-words.ts'
import { readPhrase } from './read-phrase.ts'
import { neverFires, notUnderstood, ScheduleError } from './schedule-error.ts'
import { nextSlot } from './slots.ts'
import { dayMs, minuteMs } from './zone.ts'
import { readZone } from './zone-names.ts'

export type ReadOptions = {
  now: Date
  /** The time zone of a schedule that names none; the default is UTC. */
  timezone?: string
  startsAt?: string
  endsAt?: string
  /** The shortest time that is allowed between two slots; the default is 60 seconds. */
  secondsMin?: number
  /** Whether the input is only tried, as while a sentence is split: a refusal then has its type, but fewer details. */
  isTrial?: boolean
}

const secondMs = 1_000
const yearSeconds = 365 * 24 * 3_600
const timesMax = 24
const leapYear = 2_028
const yearMax = 2_100
const instantEnd = Date.UTC(yearMax + 1, 0)

const wrong = (field: string, msg: string): ScheduleError =>
  new ScheduleError({ field, type: 'value_error', msg })

const common = ['type', 'timezone', 'starts_at', 'ends_at']
const dayNames = ['days', 'month_days', 'nth', 'months']
const fieldsOf: Readonly<Record<Calendar['type'], readonly string[]>> = {
  once: [...common, 'at'],
  interval: [...common, 'every_seconds', 'from', 'to', ...dayNames],
  calendar: [...common, 'times', ...dayNames],
  cron: [...common, 'cron'],
}

/** Returns an instant in whole seconds, rounded into the time in which the schedule may run. */
function instantText(text: string, field: string, round: (seconds: number) => number): string {
  const isInstant = /^\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})$/i.test(text)
  const ms = isInstant ? Date.parse(text) : Number.NaN
  if (!(ms >= 0 && ms < instantEnd))
    throw wrong(field, `Input should be a time up to the year ${yearMax}, such as 2026-12-24T18:00:00Z`)
  return new Date(round(ms / secondMs) * secondMs).toISOString()
}

const sorted = (numbers: readonly number[]): number[] => [...new Set(numbers)].sort((a, b) => a - b)

function wholeNumbers(
  numbers: readonly number[],
  max: number,
  field: string,
  { isLastAllowed = false } = {},
): number[] {
  const isFit = (each: number) =>
    Number.isInteger(each) && ((each >= 1 && each <= max) || (isLastAllowed && each === -1))
  if (numbers.length === 0 || !numbers.every(isFit))
    throw wrong(
      field,
      `Input should be whole numbers from 1 to ${max}${isLastAllowed ? ', or -1 for the last day' : ''}`,
    )
  const found = sorted(numbers)
  return found[0] === -1 ? [...found.slice(1), -1] : found
}

const timeForm = /^(?:[01]\d|2[0-3]):[0-5]\d$/
function readTime(time: string, field: string): string {
  if (!timeForm.test(time))
    throw wrong(field, 'Input should be a time of the day from 00:00 to 23:59, such as 09:30')
  return time
}

/** Returns the days of a calendar in order, Monday first; a list of all seven weekdays becomes every day. */
function readDays({ days, month_days, nth, months }: CalendarDays): CalendarDays {
  if ([days, month_days, nth].filter((each) => each !== undefined).length > 1)
    throw wrong(
      'schedule.days',
      'Exactly one of `days`, `month_days` and `nth` can be used: leave the others out',
    )
  const order = days?.map((day) => (weekdays.indexOf(day) + 6) % 7)
  if (order && (order.length === 0 || days?.some((day) => !weekdays.includes(day))))
    throw wrong('schedule.days', 'Input should be days such as mon or fri')
  const named = order && sorted(order).flatMap((at) => weekdays[(at + 1) % 7] ?? [])
  if (nth && !([1, 2, 3, 4, -1].includes(nth.n) && weekdays.includes(nth.day)))
    throw wrong('schedule.nth', 'Input should be `n` from 1 to 4 or -1, and a `day` such as mon')
  const monthDays = month_days && wholeNumbers(month_days, 31, 'schedule.month_days', { isLastAllowed: true })
  const namedMonths = months && wholeNumbers(months, 12, 'schedule.months')
  const [month, ...moreMonths] = namedMonths ?? []
  if (month !== undefined && moreMonths.length === 0) {
    const missing = monthDays?.find((day) => day > daysOfMonth(month, leapYear))
    if (missing !== undefined) throw neverFires(`${monthNames[month - 1]} has no day ${missing}`)
  }
  return {
    ...(named && named.length < 7 && { days: named }),
    ...(monthDays && { month_days: monthDays }),
    ...(nth && { nth: { n: nth.n, day: nth.day } }),
    ...(namedMonths && namedMonths.length < 12 && { months: namedMonths }),
  }
}

function leastInterval(minimum: number, seconds: number): ScheduleError {
  return new ScheduleError({
    field: 'schedule',
    type: 'least_interval',
    msg: `Two slots are ${seconds} seconds apart, and ${minimum} seconds are the least`,
    ctx: { minimum, unit: 'seconds' },
  })
}

/** Returns the shortest time between two slots, apart from changes of the clock. */
function shortestSeconds({ minutes, days }: Timetable): number {
  const gaps = minutes.slice(1).map((minute, at) => minute - (minutes[at] ?? 0))
  const overnight = 24 * 60 + (minutes[0] ?? 0) - (minutes.at(-1) ?? 0)
  const first = nextDay(days, 0)
  const isOvernight = (day: number | undefined): boolean => {
    for (let at = day; at !== undefined && at < 366 * dayMs; ) {
      const next = nextDay(days, at + dayMs)
      if (next === at + dayMs) return true
      at = next
    }
    return false
  }
  return 60 * Math.min(...gaps, isOvernight(first) ? overnight : Number.POSITIVE_INFINITY)
}

function readCronText(cron: string): string {
  const parts = cronFields(cron)
  const text = parts.join(' ')
  if (parts.length !== 5)
    throw notUnderstood(
      `Cron has five fields (minute, hour, day, month, weekday), and this has ${parts.length}`,
    )
  if (namesBothDays(parts)) {
    const [minute, hour, day, month, weekday] = parts
    throw notUnderstood('Cron with a day of the month and a weekday runs on either of them: keep one', {
      suggestions: [`${minute} ${hour} ${day} ${month} *`, `${minute} ${hour} * ${month} ${weekday}`],
    })
  }
  const read = readCron(text)
  if (typeof read === 'string')
    throw notUnderstood(`The ${read} of the cron text is wrong`, { unread: [text] })
  return text
}

function readInterval(fields: ScheduleFields, bounds: Bounds, now: Date): Calendar {
  const { every_seconds = Number.NaN, from, to } = fields
  if (!Number.isInteger(every_seconds) || every_seconds > yearSeconds)
    throw wrong('schedule.every_seconds', `Input should be whole seconds up to ${yearSeconds}`)
  const days = readDays(fields)
  const isWindowed = from !== undefined || to !== undefined || Object.keys(days).length > 0
  if (!isWindowed) {
    const startMs = Math.floor(now.getTime() / minuteMs) * minuteMs
    return { type: 'interval', every_seconds, starts_at: new Date(startMs).toISOString(), ...bounds }
  }
  const window = {
    from: readTime(from ?? '00:00', 'schedule.from'),
    to: readTime(to ?? '23:59', 'schedule.to'),
  }
  if (minuteOf(window.from) >= minuteOf(window.to))
    throw wrong(
      'schedule.to',
      `The hours from ${window.from} to ${window.to} are none: \`from\` is before \`to\` on one day`,
    )
  if (every_seconds % 60 !== 0 || every_seconds > 24 * 3_600)
    throw wrong(
      'schedule.every_seconds',
      'On certain days or hours an interval has whole minutes, and at most a day',
    )
  return { type: 'interval', every_seconds, ...window, ...days, ...bounds }
}

function readFields(fields: ScheduleFields, bounds: Bounds, now: Date): Calendar {
  const { type } = fields
  const declared = Object.hasOwn(fieldsOf, type) ? fieldsOf[type] : undefined
  if (!declared) throw wrong('schedule.type', 'Input should be interval, calendar, cron or once')
  const foreign = Object.keys(fields).find((name) => !declared.includes(name))
  if (foreign !== undefined)
    throw wrong(`schedule.${foreign}`, `A schedule of type ${type} has no \`${foreign}\``)
  if (type === 'interval') return readInterval(fields, bounds, now)
  if (type === 'calendar') {
    const times = [...new Set(fields.times ?? [])].map((time) => readTime(time, 'schedule.times')).sort()
    if (times.length === 0 || times.length > timesMax)
      throw wrong('schedule.times', `Input should be 1 to ${timesMax} times of the day`)
    return { type, times, ...readDays(fields), ...bounds }
  }
  if (type === 'cron') return { type, cron: readCronText(fields.cron ?? ''), ...bounds }
  return { type, at: instantText(fields.at ?? '', 'schedule.at', Math.ceil), ...bounds }
}

function assertFires(calendar: Calendar, { now, secondsMin = 60 }: ReadOptions): void {
  if (calendar.type !== 'once') {
    const seconds = isElapsed(calendar) ? calendar.every_seconds : shortestSeconds(timetableOf(calendar))
    if (seconds < secondsMin) throw leastInterval(secondsMin, seconds)
  }
  if (nextSlot(calendar, now)) return
  const isPast = calendar.type === 'once' && Date.parse(calendar.at) <= now.getTime()
  throw neverFires(
    isPast
      ? `The time ${calendar.at} has passed`
      : 'The schedule has no time to come: no such day exists, or none is between its start and its end',
  )
}

const isCron = (text: string): boolean => /^[\d*][\d*,/-]*\s+[\d*][\d*,/-]*\s+\S+\s+\S/.test(text.trim())

function read(input: string | ScheduleFields, options: ReadOptions): { calendar: Calendar; notes: string[] } {
  const { now, startsAt, endsAt, isTrial = false } = options
  const outer = readZone(options.timezone ?? 'UTC', 'timezone', now)
  const isPhrase = typeof input === 'string' && !isCron(input)
  const phrase = isPhrase ? readPhrase(input, { now, timezone: outer.zone, isTrial }) : undefined
  const fields =
    phrase?.fields ?? (typeof input === 'string' ? { type: 'cron' as const, cron: input } : input)
  const zone =
    phrase?.zone ??
    (fields.timezone === undefined ? outer : readZone(fields.timezone, 'schedule.timezone', now))
  const starts = fields.starts_at ?? startsAt
  const ends = fields.ends_at ?? endsAt
  const bounds = {
    timezone: zone.zone,
    ...(starts !== undefined && { starts_at: instantText(starts, 'starts_at', Math.ceil) }),
    ...(ends !== undefined && { ends_at: instantText(ends, 'ends_at', Math.floor) }),
  }
  const calendar = readFields(fields, bounds, now)
  assertFires(calendar, options)
  return { calendar, notes: zone.note === undefined ? [] : [zone.note] }
}

/** Reads a calendar from a phrase or fields, or returns the reason why not. A stored calendar is read as itself. */
export function readSchedule(input: string | ScheduleFields, options: ReadOptions): ScheduleReading {
  try {
    return read(input, options)
  } catch (error) {
    if (error instanceof ScheduleError) return { refusal: error.refusal }
    throw error
  }
}
