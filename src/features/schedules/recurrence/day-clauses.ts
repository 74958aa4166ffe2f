import { monthOf, ordinalOf, secondsOf, unitOf, weekdaysOf } from './english-words.ts'
import { attempt, type Cursor, readList, readNumber, readTime, set, take, wordAt } from './phrase-cursor.ts'
import type { Moment, NamedDay, Parts } from './phrase-parts.ts'

/** This module reads the clauses of a phrase that name days. */

/** Reads weekdays such as `Mondays`, `Mon-Fri` or `Monday and Thursday`. */
function readWeekdays(cursor: Cursor): { days: number[]; isOne: boolean } | undefined {
  const groups = readList(cursor, () => {
    const first = weekdaysOf(wordAt(cursor))
    if (!first) return undefined
    cursor.at++
    const [from] = first.days
    const last = attempt(cursor, () => {
      if (first.days.length > 1 || !take(cursor, 'to', 'through', 'thru')) return undefined
      const found = weekdaysOf(wordAt(cursor))
      if (found?.days.length !== 1) return undefined
      cursor.at++
      return found.days[0]
    })
    if (from === undefined || last === undefined) return first
    const days = Array.from({ length: ((last - from + 7) % 7) + 1 }, (_, ahead) => (from + ahead) % 7)
    return { days, isEach: true }
  })
  if (!groups) return undefined
  const isOne = groups.length === 1 && groups.every(({ isEach }) => !isEach)
  return { days: groups.flatMap(({ days }) => days), isOne }
}

export function setWeekdays(cursor: Cursor, { isEvery }: { isEvery: boolean }): boolean {
  const found = readWeekdays(cursor)
  if (!found) return false
  cursor.parts.isOneWeekday = found.isOne && !isEvery
  return set(cursor, 'weekdays', found.days)
}

/** Reads an ordinal such as `1st`, `first` or `twenty first`; `last` is -1. */
function readOrdinal(cursor: Cursor): number | undefined {
  const token = cursor.tokens[cursor.at]
  if (token?.kind === 'ordinal') {
    cursor.at++
    return token.value
  }
  if (take(cursor, 'last')) return -1
  const ordinal = ordinalOf(wordAt(cursor), wordAt(cursor, 1))
  cursor.at += ordinal?.count ?? 0
  return ordinal?.value
}

function readMonth(cursor: Cursor): number | undefined {
  const month = monthOf(wordAt(cursor))
  if (month !== undefined) cursor.at++
  return month
}

/** Reads the months behind a day: `of the month`, `of every month` or `of January and July`. */
function readOf(cursor: Cursor): { months?: number[] } | undefined {
  return attempt(cursor, () => {
    if (!take(cursor, 'of', 'in')) return undefined
    const months = readList(cursor, () => readMonth(cursor))
    if (months) return { months }
    return take(cursor, 'the', 'every', 'each', 'a') && take(cursor, 'month') ? {} : undefined
  })
}

type Ordinals = Pick<Parts, 'monthDays' | 'nth' | 'months'>

/** Reads days such as `the 31st`, `the 1st and 15th`, `the last day of January` or `the first Monday`. */
function readOrdinals(cursor: Cursor, { isEvery }: { isEvery: boolean }): Ordinals | undefined {
  const items = readList(cursor, () => {
    take(cursor, 'the')
    const value = readOrdinal(cursor)
    const hasDay = take(cursor, 'day', 'days')
    const isWhole = value !== -1 || hasDay || weekdaysOf(wordAt(cursor)) !== undefined
    return value === undefined || !isWhole ? undefined : { value, hasDay }
  })
  const [first, ...others] = items ?? []
  if (!items || !first) return undefined
  const [weekday, ...more] = weekdaysOf(wordAt(cursor))?.days ?? []
  if (weekday !== undefined) cursor.at++
  const month = attempt(cursor, () => (weekday === undefined ? readMonth(cursor) : undefined))
  const of = month === undefined ? readOf(cursor) : { months: [month] }
  // "Every second day" and "every second Monday" may mean every other one, so such words are not read here.
  const isCounted = weekday === undefined ? items.some(({ hasDay }) => hasDay) : first.value > 1
  if (isEvery && isCounted && !of) return undefined
  const months = of?.months ? { months: of.months } : {}
  if (weekday === undefined) return { monthDays: items.map(({ value }) => value), ...months }
  const isNth = others.length === 0 && more.length === 0 && first.value <= 4
  return isNth ? { nth: { n: first.value, weekday }, ...months } : undefined
}

export function setOrdinals(cursor: Cursor, { isEvery }: { isEvery: boolean }): boolean {
  const read = attempt(cursor, () => readOrdinals(cursor, { isEvery }))
  if (!read) return false
  if (read.nth) set(cursor, 'nth', read.nth)
  if (read.monthDays) set(cursor, 'monthDays', read.monthDays)
  if (isEvery && read.months) cursor.parts.unit ??= 'y'
  return read.months ? set(cursor, 'months', read.months) : true
}

const isMonthDay = (day: number): boolean => day === -1 || (day >= 1 && day <= 31)

/** Reads a day of the year such as `24 December` or `December 24th`; behind `every` it means each year. */
export function readMonthDay(cursor: Cursor): { month: number; day: number } | undefined {
  return attempt(cursor, () => {
    const before = readNumber(cursor)
    const month = readMonth(cursor)
    if (month === undefined) return undefined
    take(cursor, 'the')
    const day = before ?? readNumber(cursor) ?? readOrdinal(cursor)
    return day === undefined || !isMonthDay(day) ? undefined : { month, day }
  })
}

/** Reads a single day such as `tomorrow`, `next Monday`, `2026-12-24` or `24 December 2026`. */
function readNamedDay(cursor: Cursor): NamedDay | undefined {
  const token = cursor.tokens[cursor.at]
  if (token?.kind === 'date') {
    cursor.at++
    return { type: 'date', day: token.ms }
  }
  if (take(cursor, 'today')) return { type: 'ahead', days: 0 }
  if (take(cursor, 'tomorrow')) return { type: 'ahead', days: 1 }
  const weekday = attempt(cursor, () => {
    if (!take(cursor, 'next', 'this')) return undefined
    const [day, ...more] = weekdaysOf(wordAt(cursor))?.days ?? []
    cursor.at++
    return more.length === 0 ? day : undefined
  })
  if (weekday !== undefined) return { type: 'weekday', weekday }
  const yearly = readMonthDay(cursor)
  if (!yearly) return undefined
  const year = attempt(cursor, () => {
    take(cursor, ',')
    const found = cursor.tokens[cursor.at]
    if (found?.kind !== 'number' || found.value < 1_970 || found.value > 9_999) return undefined
    cursor.at++
    return found.value
  })
  if (year === undefined) return { type: 'yearly', ...yearly }
  const day = Date.UTC(year, yearly.month - 1, yearly.day)
  return new Date(day).getUTCDate() === yearly.day ? { type: 'date', day } : undefined
}

/** Reads a moment; a time behind the day is read only if `at` or a clock time follows at once. */
export function readMoment(cursor: Cursor, { hasTime }: { hasTime: boolean }): Moment | undefined {
  const token = cursor.tokens[cursor.at]
  if (token?.kind === 'moment' || token?.kind === 'instant') {
    cursor.at++
    return { type: token.kind === 'moment' ? 'local' : 'instant', ms: token.ms }
  }
  return attempt(cursor, () => {
    take(cursor, 'on', 'at')
    const day = readNamedDay(cursor)
    if (!day) return undefined
    const time = hasTime
      ? attempt(cursor, () => readTime(cursor, { isBareAllowed: take(cursor, 'at') }))
      : undefined
    return time ? { type: 'day', day, minute: time.minute } : { type: 'day', day }
  })
}

/** Periods of up to a century, in seconds, are read behind `in`. */
const aheadMax = 100 * 365 * 86_400

/** Reads days such as `on Mondays`, `from Monday to Friday`, `on the 31st`, `in January` or `in 2 hours`. */
export function readDays(cursor: Cursor): boolean {
  const hasMoment = attempt(cursor, () => {
    take(cursor, 'on')
    const moment = readMoment(cursor, { hasTime: false })
    if (moment?.type !== 'day' || moment.day.type !== 'yearly') return moment && set(cursor, 'moment', moment)
    return set(cursor, 'months', [moment.day.month]) && set(cursor, 'monthDays', [moment.day.day])
  })
  if (hasMoment) return true
  const isRead = attempt(cursor, () => {
    if (take(cursor, 'from'))
      return (setWeekdays(cursor, { isEvery: false }) && !cursor.parts.isOneWeekday) || undefined
    take(cursor, 'on')
    return setWeekdays(cursor, { isEvery: false }) || setOrdinals(cursor, { isEvery: false }) || undefined
  })
  if (isRead) return true
  const months = readOf(cursor)
  if (months) return months.months ? set(cursor, 'months', months.months) : set(cursor, 'unit', 'mo')
  const seconds = attempt(cursor, () => {
    if (!take(cursor, 'in')) return undefined
    const token = cursor.tokens[cursor.at]
    const count = token?.kind === 'span' ? token.value : readNumber(cursor)
    const unit = token?.kind === 'span' ? token.unit : unitOf(wordAt(cursor))
    cursor.at++
    const each = unit && secondsOf[unit]
    const ahead = count === undefined || each === undefined ? undefined : count * each
    return ahead === undefined || ahead > aheadMax ? undefined : ahead
  })
  return seconds === undefined ? false : set(cursor, 'aheadSeconds', seconds)
}
