import { weekdays } from './calendar-types.ts'
import type { DayRule } from './day-rule.ts'

/** This module reads cron texts of five fields: minute, hour, day of the month, month, weekday. */

/** The days on which a calendar runs, and the minutes after midnight on each of them. */
export type Timetable = {
  minutes: number[]
  /**
   * Whether the minutes are a regular grid: a minute that a clock change repeats then runs twice, and a skipped one
   * never. Otherwise each minute runs once a day.
   */
  isGrid: boolean
  days: DayRule
}

type Field = { name: string; min: number; max: number; names: readonly string[] }

const months = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')
const fields = {
  minute: { name: 'minute', min: 0, max: 59, names: [] },
  hour: { name: 'hour', min: 0, max: 23, names: [] },
  day: { name: 'day of the month', min: 1, max: 31, names: [] },
  month: { name: 'month', min: 1, max: 12, names: ['', ...months] },
  // Cron counts Sunday as 0 and as 7.
  weekday: { name: 'weekday', min: 0, max: 7, names: weekdays },
} as const satisfies Record<string, Field>

const isAny = (text: string): boolean => text === '*' || text === '*/1'

function numberOf(text: string, { min, max, names }: Field): number {
  const named = text === '' ? -1 : names.indexOf(text)
  const value = named >= 0 ? named : /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN
  return value >= min && value <= max ? value : Number.NaN
}

/** Returns the values of a cron field in ascending order; undefined if the text is no such field. */
function valuesOf(text: string, field: Field): number[] | undefined {
  const values = new Set<number>()
  for (const part of text.split(',')) {
    const [, range = '', step = '1'] = /^([^/]+)(?:\/(\d{1,2}))?$/.exec(part) ?? []
    const [first = '', last] = range.split('-')
    const from = range === '*' ? field.min : numberOf(first, field)
    const to = range === '*' ? field.max : last === undefined ? from : numberOf(last, field)
    const isStepOfOne = step !== '1' && range !== '*' && last === undefined
    if (!(from <= to) || Number(step) < 1 || isStepOfOne || range.split('-').length > 2) return undefined
    for (let value = from; value <= to; value += Number(step)) values.add(value)
  }
  return [...values].sort((a, b) => a - b)
}

function daysOf(dayText: string, weekdayText: string): Omit<DayRule, 'isLiteral' | 'months'> | string {
  if (!isAny(dayText)) {
    const parts = dayText.split(',')
    const numbers = parts.filter((part) => part !== 'l')
    const values = numbers.length === 0 ? [] : valuesOf(numbers.join(','), fields.day)
    if (!values) return fields.day.name
    return { monthDays: numbers.length < parts.length ? [...values, -1] : values }
  }
  if (isAny(weekdayText)) return {}
  const [, name = '', n] = /^(\w+)#([1-4]|l)$/.exec(weekdayText) ?? []
  if (n !== undefined) {
    const weekday = numberOf(name, fields.weekday) % 7
    return Number.isNaN(weekday) ? fields.weekday.name : { nth: { n: n === 'l' ? -1 : Number(n), weekday } }
  }
  const values = valuesOf(weekdayText, fields.weekday)
  if (!values) return fields.weekday.name
  return { weekdays: [...new Set(values.map((value) => value % 7))].sort((a, b) => a - b) }
}

export const cronFields = (text: string): string[] => text.trim().toLowerCase().split(/\s+/)

/** Whether a cron text sets day of the month and weekday: cron runs on either, which few people expect. */
export const namesBothDays = ([, , day = '*', , weekday = '*']: readonly string[]): boolean =>
  !isAny(day) && !isAny(weekday)

/** Returns a cron text's timetable or the name of its wrong field; both kinds of days together are refused. */
export function readCron(text: string): Timetable | string {
  const parts = cronFields(text)
  if (parts.length !== 5) return 'number of fields'
  const [minuteText = '', hourText = '', dayText = '', monthText = '', weekdayText = ''] = parts
  const minutes = valuesOf(minuteText, fields.minute)
  if (!minutes) return fields.minute.name
  const hours = valuesOf(hourText, fields.hour)
  if (!hours) return fields.hour.name
  const named = isAny(monthText) ? undefined : valuesOf(monthText, fields.month)
  if (!named && !isAny(monthText)) return fields.month.name
  const days = daysOf(dayText, weekdayText)
  if (typeof days === 'string') return days
  return {
    minutes: hours.flatMap((hour) => minutes.map((minute) => hour * 60 + minute)),
    // A step, or every hour, makes a regular grid; a list names times of the day.
    isGrid: /[*/]/.test(minuteText) || isAny(hourText),
    days: { ...days, ...(named && { months: named }), isLiteral: true },
  }
}
