import { dayMs } from './zone.ts'

/** A rule that selects days; weekdays are numbers from 0, which is Sunday. */
export type DayRule = {
  weekdays?: number[]
  monthDays?: number[]
  nth?: { n: number; weekday: number }
  months?: number[]
  /** Whether a day that a month does not have is left out, instead of the month's last day taking its place. */
  isLiteral: boolean
}

export const daysOfMonth = (month: number, year: number): number =>
  new Date(Date.UTC(year, month, 0)).getUTCDate()

/** Whether the rule selects this day; the caller has checked the month. */
function holdsDay(rule: DayRule, dayStart: number): boolean {
  const { weekdays, monthDays, nth, isLiteral } = rule
  const date = new Date(dayStart)
  if (weekdays) return weekdays.includes(date.getUTCDay())
  if (!monthDays && !nth) return true
  const day = date.getUTCDate()
  const last = daysOfMonth(date.getUTCMonth() + 1, date.getUTCFullYear())
  if (monthDays)
    return monthDays.some((each) => {
      if (each === -1 || (each > last && !isLiteral)) return day === last
      return day === each
    })
  if (!nth || date.getUTCDay() !== nth.weekday) return false
  return nth.n === -1 ? day + 7 > last : Math.ceil(day / 7) === nth.n
}

/** The search for a day ends after nine years, because around 2100 leap days are eight years apart. */
const daysMax = 9 * 366

/** Returns the first day of the rule from `dayStart` on; undefined if no such day ever comes. */
export function nextDay(rule: DayRule, dayStart: number): number | undefined {
  const { months } = rule
  for (let day = dayStart; day < dayStart + daysMax * dayMs; ) {
    const date = new Date(day)
    if (months && !months.includes(date.getUTCMonth() + 1))
      day = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
    else if (holdsDay(rule, day)) return day
    else day += dayMs
  }
  return undefined
}
