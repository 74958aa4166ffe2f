export const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
export type Weekday = (typeof weekdays)[number]

/** Without a field every day counts. At most one of `days`, `month_days` and `nth` is set. */
export type CalendarDays = {
  days?: Weekday[]
  /** -1 is the last day. A day beyond the end of a shorter month is its last day, unless one month alone is named. */
  month_days?: number[]
  /** The first to fourth, or with -1 the last, such weekday of a month. */
  nth?: { n: number; day: Weekday }
  months?: number[]
}

/** Instants are UTC and whole seconds; no slot is before `starts_at` or after `ends_at`. */
export type Bounds = { timezone: string; starts_at?: string; ends_at?: string }

export type Once = Bounds & { type: 'once'; at: string }
/** Elapsed time, counted from `starts_at`. */
export type Interval = Bounds & { type: 'interval'; every_seconds: number; starts_at: string }
/** A grid of minutes on the local clock from `from` to `to`, which goes on through a repeated hour. */
export type WindowedInterval = Bounds &
  CalendarDays & { type: 'interval'; every_seconds: number; from: string; to: string }
/** Named local times such as `09:00`. Each runs once a day. */
export type Daily = Bounds & CalendarDays & { type: 'calendar'; times: string[] }
export type CronCalendar = Bounds & { type: 'cron'; cron: string }

/** When a schedule runs: JSON that is stored as it is, and that `readSchedule` reads as the same calendar. */
export type Calendar = Once | Interval | WindowedInterval | Daily | CronCalendar

/** What a client may send instead of a phrase: the fields of one kind of calendar. */
export type ScheduleFields = CalendarDays & {
  type: Calendar['type']
  timezone?: string
  every_seconds?: number
  from?: string
  to?: string
  times?: string[]
  cron?: string
  at?: string
  starts_at?: string
  ends_at?: string
}

/** Whether only the time since the start counts, and no day or hour. */
export const isElapsed = (calendar: Calendar): calendar is Interval =>
  calendar.type === 'interval' && !('from' in calendar)

export type RefusalType = 'not_understood' | 'least_interval' | 'never_fires' | 'unknown_zone' | 'value_error'

/** Why an input is no schedule, in the form that `invalid` of the faults takes. */
export type Refusal = {
  /** A path in the body of the request, such as `schedule.cron`. */
  field: string
  type: RefusalType
  msg: string
  ctx: {
    examples: string[]
    /** Words of a phrase that were not read. */
    unread?: string[]
    /** Zones, or schedules, that may have been meant. */
    suggestions?: string[]
    minimum?: number
    unit?: 'seconds'
  }
}

/** Notes say what was read in another sense than its letters: `EST` as America/New_York. */
export type ScheduleReading = { calendar: Calendar; notes: string[] } | { refusal: Refusal }
