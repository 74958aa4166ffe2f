import { timeText, timetableOf } from './calendar-to-timetable.ts'
import { type Calendar, isElapsed } from './calendar-types.ts'
import type { Timetable } from './cron.ts'
import { type DayRule, daysOfMonth } from './day-rule.ts'
import {
  leapDayRemark,
  leapYearRemark,
  listText,
  monthNames,
  shorterMonthRemark,
  weekdayNames,
  workdays,
} from './english-words.ts'
import { slotsBetween } from './slots.ts'
import { instantOf, localTime, minuteMs } from './zone.ts'

/** This module describes schedules in English; each description reads back as the calendar that it describes. */

const monthText = (months: readonly number[]): string =>
  listText(months.map((month) => monthNames[month - 1] ?? ''))

const endings = ['th', 'st', 'nd', 'rd']
export const ordinalText = (day: number): string => {
  if (day === -1) return 'the last day'
  const ending = day > 10 && day < 14 ? 'th' : (endings[day % 10] ?? 'th')
  return `the ${day}${ending}`
}

export const nthNames: ReadonlyMap<number, string> = new Map([
  [-1, 'last'],
  [1, 'first'],
  [2, 'second'],
  [3, 'third'],
  [4, 'fourth'],
])

const allMonths = monthNames.map((_, at) => at + 1)

/** Says in words which day is taken in months that lack the named day. */
function shorterMonths({ monthDays = [], months = allMonths, isLiteral }: DayRule): string {
  const last = Math.max(...monthDays)
  if (!months.some((month) => daysOfMonth(month, 2_026) < last)) return ''
  if (!isLiteral) return ` (${shorterMonthRemark})`
  if (months.join() !== '2' || last > 29) return ' (left out in months without it)'
  return ` (${monthDays.length === 1 ? leapYearRemark : leapDayRemark})`
}

function dayText(rule: DayRule): string {
  const { weekdays, monthDays, nth, months } = rule
  const inMonths = months ? ` in ${monthText(months)}` : ''
  if (monthDays || nth) {
    const days = nth
      ? `the ${nthNames.get(nth.n)} ${weekdayNames[nth.weekday]}`
      : listText((monthDays ?? []).map(ordinalText))
    return months
      ? `every year on ${days} of ${monthText(months)}${shorterMonths(rule)}`
      : `on ${days} of every month${shorterMonths(rule)}`
  }
  if (!weekdays) return `every day${inMonths}`
  const ordered = weekdays.toSorted((a, b) => ((a + 6) % 7) - ((b + 6) % 7))
  const isWorkdays = ordered.join() === workdays.join()
  return `every ${isWorkdays ? 'weekday' : listText(ordered.map((day) => weekdayNames[day] ?? ''))}${inMonths}`
}

const periods = [
  { seconds: 86_400, name: 'day' },
  { seconds: 3_600, name: 'hour' },
  { seconds: 60, name: 'minute' },
  { seconds: 1, name: 'second' },
]

/** Returns a period in words; a day is `24 hours`, since `every day` would name a time of the day. */
function periodText(every: number): string {
  const period = periods.find(
    ({ seconds }) => every % seconds === 0 && every / seconds > Number(seconds === 86_400),
  )
  const { seconds, name } = period ?? { seconds: 1, name: 'second' }
  const count = every / seconds
  return count === 1 && name !== 'second' ? `every ${name}` : `every ${count} ${name}s`
}

const listedTimesMax = 24

/** Describes a grid of minutes: a period if the minutes are evenly spaced, otherwise the minutes of the hours. */
function gridText(minutes: readonly number[]): string {
  const [first = 0, second = 0] = minutes
  const step = second - first
  const isEven = minutes.length > 1 && minutes.every((minute, at) => minute === first + at * step)
  if (isEven) return `${periodText(step * 60)} from ${timeText(first)} to ${timeText(minutes.at(-1) ?? 0)}`
  const past = [...new Set(minutes.map((minute) => minute % 60))]
  const hours = [...new Set(minutes.map((minute) => Math.floor(minute / 60)))]
  const ofHours = hours.length === 24 ? 'every hour' : `the hours ${listText(hours.map(String))}`
  return `at the minutes ${listText(past.map(String))} of ${ofHours}`
}

const onDays = (rule: DayRule): string => (dayText(rule) === 'every day' ? '' : `, ${dayText(rule)}`)

function tableText({ minutes, isGrid, days }: Timetable): string {
  if (isGrid || minutes.length > listedTimesMax) return `${gridText(minutes)}${onDays(days)}`
  return `${dayText(days)} at ${listText(minutes.map(timeText))}`
}

const clockText = (localMs: number): string =>
  new Date(localMs)
    .toISOString()
    .slice(0, localMs % minuteMs === 0 ? 16 : 19)
    .replace('T', ' ')

/** Returns an instant on the local clock; the second one of a repeated local time is given in UTC. */
function momentText(zone: string, at: string): string {
  const atMs = Date.parse(at)
  const localMs = localTime(zone, atMs)
  return instantOf(zone, localMs) === atMs ? clockText(localMs) : `${clockText(atMs)} UTC`
}

function ruleText(calendar: Calendar): string {
  if (calendar.type === 'once') return `once on ${momentText(calendar.timezone, calendar.at)}`
  if (isElapsed(calendar)) return periodText(calendar.every_seconds)
  const table = timetableOf(calendar)
  if (calendar.type !== 'interval') return tableText(table)
  return `${periodText(calendar.every_seconds)} from ${calendar.from} to ${calendar.to}${onDays(table.days)}`
}

/** Returns the start and the end of a calendar in words, as far as it has them. */
export function boundTexts(calendar: Calendar): string[] {
  const { timezone, starts_at, ends_at } = calendar
  const start = isElapsed(calendar) ? 'counted from' : 'starting'
  return [
    ...(starts_at === undefined ? [] : [`${start} ${momentText(timezone, starts_at)}`]),
    ...(ends_at === undefined ? [] : [`until ${momentText(timezone, ends_at)}`]),
  ]
}

export function describe(calendar: Calendar): string {
  const text = [ruleText(calendar), ...boundTexts(calendar), calendar.timezone].join(', ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

/** Returns a local time such as `Monday 2026-12-07 09:00 America/New_York (UTC-05:00)`. */
export function localText(timezone: string, at: Date): string {
  const localMs = localTime(timezone, at.getTime())
  const offset = (localMs - at.getTime()) / minuteMs
  const weekday = weekdayNames[new Date(localMs).getUTCDay()]
  const sign = offset < 0 ? '-' : '+'
  return `${weekday} ${clockText(localMs)} ${timezone} (UTC${sign}${timeText(Math.abs(offset))})`
}

/** The next slots after an instant, in UTC and on the local clock. */
export function nextRuns(calendar: Calendar, from: Date, count: number): { at: string; local: string }[] {
  const runs: { at: string; local: string }[] = []
  for (const slot of slotsBetween(calendar, from)) {
    if (runs.length >= count) break
    runs.push({ at: slot.toISOString(), local: localText(calendar.timezone, slot) })
  }
  return runs
}
