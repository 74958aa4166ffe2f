import { dayMs } from './zone.ts'

/** Days with weekdays as numbers from 0, Sunday. */
export type DayRule = {
  weekdays?: number[]
  monthDays?: number[]
  nth?: { n: number; weekday: number }
  months?: number[]
  /** A day that a month does not have is left out, and not its last day instead. */
  isLiteral: boolean
}

export const daysOfMonth = (month: number, year: number): number =>
  new Date(Date.UTC(year, month, 0)).getUTCDate()

function holdsDay(rule: DayRule, dayStart: number): boolean {
  const { weekdays, monthDays, nth, months, isLiteral } = rule
  const date = new Date(dayStart)
  if (months && !months.includes(date.getUTCMonth() + 1)) return false
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

/** Eight years lie between two leap days around 2100. */
const daysMax = 9 * 366

/** The first day of the rule from `dayStart` on; undefined where none ever comes. */
export function nextDay(rule: DayRule, dayStart: number): number | undefined {
  for (let day = dayStart, count = 0; count < daysMax; day += dayMs, count++)
    if (holdsDay(rule, day)) return day
  return undefined
}
