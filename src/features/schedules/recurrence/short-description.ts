import { timeText, timetableOf } from './calendar-to-timetable.ts'
import { type Calendar, isElapsed } from './calendar-types.ts'
import type { Timetable } from './cron.ts'
import type { DayRule } from './day-rule.ts'
import { boundTexts, describe, nthNames, ordinalText } from './describe.ts'
import { listText, monthNames, weekdayNames } from './english-words.ts'

/** A short description says in few characters when a schedule runs, for the page that a person reads before an approval. */

const namedMax = 2
const shortCharacters = 200

/** Names a few values; of more it gives the number, the first and the last. */
const someOf = (names: readonly string[], unit: string): string =>
  names.length <= namedMax ? listText(names) : `${names.length} ${unit} (${names[0]} to ${names.at(-1)})`

function daysText({ weekdays, monthDays, nth, months }: DayRule): string {
  const named = months?.map((month) => monthNames[month - 1] ?? '')
  const inMonths = named ? ` in ${someOf(named, 'months')}` : ''
  if (nth) return `on the ${nthNames.get(nth.n)} ${weekdayNames[nth.weekday]} of each month${inMonths}`
  if (monthDays) {
    const days = monthDays.length <= namedMax ? monthDays.map(ordinalText) : [`${monthDays.length} days`]
    return `on ${listText(days)} of each month${inMonths}`
  }
  if (!weekdays) return `every day${inMonths}`
  const days = weekdays.map((day) => weekdayNames[day] ?? '')
  return `${days.length <= namedMax ? `every ${listText(days)}` : `on ${days.length} days of each week`}${inMonths}`
}

function tableText({ minutes, days }: Timetable): string {
  const times = someOf(minutes.map(timeText), 'times a day')
  return minutes.length <= namedMax ? `at ${times} ${daysText(days)}` : `${times} ${daysText(days)}`
}

/** Returns the description of a calendar; where that is long, values are counted, so that none is cut off. */
export function shortDescriptionOf(calendar: Calendar): string {
  const whole = describe(calendar)
  if (whole.length <= shortCharacters || calendar.type === 'once' || isElapsed(calendar)) return whole
  const text = [tableText(timetableOf(calendar)), ...boundTexts(calendar), calendar.timezone].join(', ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

const daySeconds = 86_400

/** Returns how often a calendar runs on one of its days. */
export function runsADay(calendar: Calendar): number {
  if (calendar.type === 'once') return 1
  if (isElapsed(calendar)) return Math.ceil(daySeconds / calendar.every_seconds)
  return timetableOf(calendar).minutes.length
}
