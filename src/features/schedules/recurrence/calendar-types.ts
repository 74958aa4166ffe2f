export const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
export type Weekday = (typeof weekdays)[number]

/** The days of a calendar; without a field every day counts. At most one of `days`, `month_days`, `nth` is set. */
export type CalendarDays = {
  days?: Weekday[]
  /** Month days; -1 is the last. A day that a month lacks means its last day, unless one month alone is named. */
  month_days?: number[]
  /** The first to fourth weekday of this name in a month; with -1, the last. */
  nth?: { n: number; day: Weekday }
  months?: number[]
}

/** The time zone of a calendar, and the instants between which all its slots lie, in UTC and whole seconds. */
export type Bounds = { timezone: string; starts_at?: string; ends_at?: string }

export type Once = Bounds & { type: 'once'; at: string }
/** An interval of elapsed time, counted from `starts_at`. */
export type Interval = Bounds & { type: 'interval'; every_seconds: number; starts_at: string }
/** A grid of minutes on the local clock from `from` to `to`; a repeated hour of the clock has its slots twice. */
export type WindowedInterval = Bounds &
  CalendarDays & { type: 'interval'; every_seconds: number; from: string; to: string }
/** Named local times such as `09:00`. Each runs once a day. */
export type Daily = Bounds & CalendarDays & { type: 'calendar'; times: string[] }
export type CronCalendar = Bounds & { type: 'cron'; cron: string }

/** The times at which a schedule runs: JSON that is stored, and that `readSchedule` reads as the same calendar. */
export type Calendar = Once | Interval | WindowedInterval | Daily | CronCalendar

/** The fields of one kind of calendar, which a client may send instead of a phrase. */
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

/** Whether the calendar is an interval of elapsed time, which depends on no day and no hour of the local clock. */
export const isElapsed = (calendar: Calendar): calendar is Interval =>
  calendar.type === 'interval' && !('from' in calendar)

export type RefusalType = 'not_understood' | 'least_interval' | 'never_fires' | 'unknown_zone' | 'value_error'

/** The reason why an input is no schedule, in the form that the function `invalid` takes. */
export type Refusal = {
  /** The path of the wrong field in the body of the request, such as `schedule.cron`. */
  field: string
  type: RefusalType
  msg: string
  ctx: {
    examples: string[]
    /** The words of a phrase that were not understood. */
    unread?: string[]
    /** Time zones or schedules that the client may have meant. */
    suggestions?: string[]
    minimum?: number
    unit?: 'seconds'
  }
}

/**
 * A calendar that was read, or the reason why not. `notes` names words that were read in another sense, such as `EST`
 * as America/New_York.
 */
export type ScheduleReading = { calendar: Calendar; notes: string[] } | { refusal: Refusal }
