import type { Unit } from './english.ts'
import type { ZoneReading } from './zone-names.ts'

/** A time of the day, in minutes after midnight, as it was written: `9am`, `9` or `21:00`, `noon`. */
export type ClockTime = { minute: number; form: 'meridiem' | 'plain' | 'named' }

/** A day that is named: a date, so many days from today, the next such weekday, or a day of a month in any year. */
export type NamedDay =
  | { type: 'date'; day: number }
  | { type: 'ahead'; days: number }
  | { type: 'weekday'; weekday: number }
  | { type: 'yearly'; month: number; day: number }

/** A day with or without a time, a local time, or an instant. */
export type Moment =
  | { type: 'day'; day: NamedDay; minute?: number }
  | { type: 'local'; ms: number }
  | { type: 'instant'; ms: number }

/** What the clauses of a phrase say, before it is known whether they fit together. */
export type Parts = {
  /** `every 15 minutes`. */
  seconds?: number
  /** `daily`, `every month`. */
  unit?: Extract<Unit, 'd' | 'w' | 'mo' | 'y'>
  /** `twice a day`: so many times in each unit. */
  count?: number
  isOnce?: true
  weekdays?: number[]
  /** `Monday` alone may be the next one or each. */
  isOneWeekday?: boolean
  monthDays?: number[]
  nth?: { n: number; weekday: number }
  months?: number[]
  times?: ClockTime[]
  window?: { from: ClockTime; to: ClockTime }
  dayPart?: 'morning' | 'afternoon' | 'evening'
  moment?: Moment
  /** `in 2 hours`. */
  aheadSeconds?: number
  starts?: Moment
  ends?: Moment
  zone?: ZoneReading
}
