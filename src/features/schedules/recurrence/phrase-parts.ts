import type { Unit } from './english-words.ts'
import type { ZoneReading } from './zone-names.ts'

/** A time of the day, in minutes after midnight, and how it was written: `9am`, `9` or `21:00`, `noon`. */
export type ClockTime = { minute: number; form: 'meridiem' | 'plain' | 'named' }

/** A single day: a date, a number of days from today, the next weekday of a name, or a day of the year. */
export type NamedDay =
  | { type: 'date'; day: number }
  | { type: 'ahead'; days: number }
  | { type: 'weekday'; weekday: number }
  | { type: 'yearly'; month: number; day: number }

/** A moment in a phrase: a day with or without a time, a local time, or an instant. */
export type Moment =
  | { type: 'day'; day: NamedDay; minute?: number }
  | { type: 'local'; ms: number }
  | { type: 'instant'; ms: number }

/** The parts that the clauses of a phrase name, before it is known whether the parts fit together. */
export type Parts = {
  /** The period of `every 15 minutes`, in seconds. */
  seconds?: number
  /** The unit of `daily` or `every month`. */
  unit?: Extract<Unit, 'd' | 'w' | 'mo' | 'y'>
  /** The number of times in each unit: 2 for `twice a day`. */
  count?: number
  isOnce?: true
  weekdays?: number[]
  /** Set if one weekday stands alone: `Monday` may mean the next one or each. */
  isOneWeekday?: boolean
  monthDays?: number[]
  nth?: { n: number; weekday: number }
  months?: number[]
  times?: ClockTime[]
  window?: { from: ClockTime; to: ClockTime }
  dayPart?: 'morning' | 'afternoon' | 'evening'
  moment?: Moment
  /** The seconds from now of `in 2 hours`. */
  aheadSeconds?: number
  starts?: Moment
  ends?: Moment
  zone?: ZoneReading
}
