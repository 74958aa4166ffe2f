import { type Calendar, isElapsed } from './calendar.ts'
import type { Timetable } from './cron.ts'
import { nextDay } from './day-rule.ts'
import { timetableOf } from './timetable.ts'
import { dayMs, firstInstant, localTime, minuteMs, startOfDay, zoneDay } from './zone.ts'

/** Slots are the instants at which a schedule runs. */

/** Returns the slots of one local day, in order. */
function slotsOfDay({ minutes, isGrid }: Timetable, zone: string, day: number): number[] {
  const zoned = zoneDay(zone, day)
  if (zoned.spans.length === 0) return []
  if (!isGrid) return minutes.map((minute) => firstInstant(zoned, day + minute * minuteMs))
  const slots: number[] = []
  for (const { fromMs, toMs, offsetMs } of zoned.spans)
    for (const minute of minutes) {
      const slot = day + minute * minuteMs - offsetMs
      if (slot >= fromMs && slot < toMs) slots.push(slot)
    }
  return slots
}

function* dailySlots(table: Timetable, zone: string, afterMs: number): Generator<number> {
  let last = afterMs
  let day = nextDay(table.days, startOfDay(localTime(zone, afterMs)))
  while (day !== undefined) {
    for (const slot of slotsOfDay(table, zone, day)) {
      // Two local times that a clock change skips become one instant, which counts once.
      if (slot <= last) continue
      yield slot
      last = slot
    }
    day = nextDay(table.days, day + dayMs)
  }
}

function* intervalSlots(startMs: number, everyMs: number, afterMs: number): Generator<number> {
  for (let count = Math.max(0, Math.floor((afterMs - startMs) / everyMs) + 1); ; count++)
    yield startMs + count * everyMs
}

function slotsOf(calendar: Calendar, afterMs: number): Iterable<number> {
  if (calendar.type === 'once') {
    const atMs = Date.parse(calendar.at)
    return atMs > afterMs ? [atMs] : []
  }
  if (isElapsed(calendar))
    return intervalSlots(Date.parse(calendar.starts_at), calendar.every_seconds * 1_000, afterMs)
  return dailySlots(timetableOf(calendar), calendar.timezone, afterMs)
}

/** Yields the slots after an instant up to another one; each slot is computed when it is asked for. */
export function* slotsBetween(calendar: Calendar, after: Date, until?: Date): Generator<Date> {
  const { starts_at, ends_at } = calendar
  const beforeStart = starts_at === undefined ? Number.NEGATIVE_INFINITY : Date.parse(starts_at) - 1
  const end = ends_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(ends_at)
  const last = Math.min(end, until?.getTime() ?? Number.POSITIVE_INFINITY)
  for (const slot of slotsOf(calendar, Math.max(after.getTime(), beforeStart))) {
    if (slot > last) return
    yield new Date(slot)
  }
}

/** Returns the first slot after an instant; undefined if no further slot comes. */
export function nextSlot(calendar: Calendar, after: Date): Date | undefined {
  for (const slot of slotsBetween(calendar, after)) return slot
  return undefined
}
