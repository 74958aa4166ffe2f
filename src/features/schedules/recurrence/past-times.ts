import { invalid } from '#kernel/contract/fault.ts'
import type { Calendar, Refusal } from './calendar-types.ts'
import { localDayEnds } from './local-days.ts'
import { readSchedule } from './read-schedule.ts'
import { ScheduleError } from './schedule-error.ts'
import { slotsBetween } from './slots.ts'
import { readZone } from './zone-names.ts'

/** The times of a schedule in a time that may be over, such as that of a backtest. */

type Past = { timezone: string; fromMs: number; toMs: number }
const slotsMax = 20_000
const secondsMin = 300

const refused = ({ field, type, msg, ctx }: Refusal) => invalid(field, type, msg, { ...ctx })

/** Returns the slots of a schedule in words, as if it began with `fromMs`. */
export function pastSlots(words: string, { timezone, fromMs, toMs }: Past): number[] {
  const now = new Date(fromMs)
  const reading = readSchedule(words, { now, timezone, secondsMin })
  if ('refusal' in reading) throw refused(reading.refusal)
  return slotTimes(reading.calendar, fromMs, toMs)
}

function slotTimes(calendar: Calendar, fromMs: number, toMs: number): number[] {
  const slots: number[] = []
  for (const slot of slotsBetween(calendar, new Date(fromMs), new Date(toMs))) {
    if (slots.length === slotsMax)
      throw invalid('schedule', 'value_error', `Value error: at most ${slotsMax} times are within this time`)
    slots.push(slot.getTime())
  }
  return slots
}

/** Returns the ends of the local days of a named zone. */
export function pastDayEnds(timezone: string, fromMs: number, toMs: number): number[] {
  try {
    return localDayEnds(readZone(timezone, 'timezone', new Date(fromMs)).zone, fromMs, toMs)
  } catch (error) {
    if (!(error instanceof ScheduleError)) throw error
    throw refused(error.refusal)
  }
}
