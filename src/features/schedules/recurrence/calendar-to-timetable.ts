import {
  type CalendarDays,
  type CronCalendar,
  type Daily,
  type WindowedInterval,
  weekdays,
} from './calendar-types.ts'
import { readCron, type Timetable } from './cron.ts'
import type { DayRule } from './day-rule.ts'

export const minuteOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))

export function timetableOf(calendar: Daily | WindowedInterval | CronCalendar): Timetable {
  if (calendar.type === 'cron') {
    const cron = readCron(calendar.cron)
    if (typeof cron === 'string') throw new Error(`a stored calendar has a wrong cron text: ${cron}`)
    return cron
  }
  const days = dayRuleOf(calendar)
  if (calendar.type === 'calendar') return { minutes: calendar.times.map(minuteOf), isGrid: false, days }
  const [from, to, step] = [minuteOf(calendar.from), minuteOf(calendar.to), calendar.every_seconds / 60]
  const count = Math.floor((to - from) / step) + 1
  return { minutes: Array.from({ length: count }, (_, at) => from + at * step), isGrid: true, days }
}

const dayRuleOf = ({ days, month_days, nth, months }: CalendarDays): DayRule => ({
  ...(days && { weekdays: days.map((day) => weekdays.indexOf(day)) }),
  ...(month_days && { monthDays: month_days }),
  ...(nth && { nth: { n: nth.n, weekday: weekdays.indexOf(nth.day) } }),
  ...(months && { months }),
  isLiteral: months?.length === 1,
})

export const timeText = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`
