import { LRUCache } from 'lru-cache'
import { timetableOf } from './calendar-to-timetable.ts'
import { type Calendar, type Interval, isElapsed, type Once } from './calendar-types.ts'
import type { Timetable } from './cron.ts'
import { nextDay } from './day-rule.ts'
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

/** Yields the slots after an instant, in order and by local day; a day without a slot is left out. */
function* slotDays(table: Timetable, zone: string, afterMs: number): Generator<number[]> {
  let last = afterMs
  let day = nextDay(table.days, startOfDay(localTime(zone, afterMs)))
  while (day !== undefined) {
    const slots: number[] = []
    for (const slot of slotsOfDay(table, zone, day)) {
      // Two local times that a clock change skips become one instant, which counts once.
      if (slot <= last) continue
      slots.push(slot)
      last = slot
    }
    if (slots.length > 0) yield slots
    day = nextDay(table.days, day + dayMs)
  }
}

function* dailySlots(table: Timetable, zone: string, afterMs: number): Generator<number> {
  for (const slots of slotDays(table, zone, afterMs)) yield* slots
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

const boundsOf = ({ starts_at, ends_at }: Calendar) => ({
  beforeStart: starts_at === undefined ? Number.NEGATIVE_INFINITY : Date.parse(starts_at) - 1,
  end: ends_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(ends_at),
})

/** Yields the slots after an instant up to another one; each slot is computed when it is asked for. */
export function* slotsBetween(calendar: Calendar, after: Date, until?: Date): Generator<Date> {
  const { beforeStart, end } = boundsOf(calendar)
  const last = Math.min(end, until?.getTime() ?? Number.POSITIVE_INFINITY)
  for (const slot of slotsOf(calendar, Math.max(after.getTime(), beforeStart))) {
    if (slot > last) return
    yield new Date(slot)
  }
}

type DayCalendar = Exclude<Calendar, Once | Interval>
/** A timetable that was read, with the slots after `afterMs` on the day that was searched last. */
type KnownTimetable = { table: Timetable; afterMs: number; slots: readonly number[] }

/** A known timetable takes up to 12 KiB: a grid of every minute has 1,440 slots a day. */
const timetablesMax = 500
const timetables = new LRUCache<string, KnownTimetable>({ max: timetablesMax })

/**
 * Returns the first slot after an instant. Reading a calendar and a local day takes a hundred times as long as looking
 * a slot up, so both are kept: missed slots are counted one by one, and many schedules have the same calendar.
 */
function nextDailySlot(calendar: DayCalendar, afterMs: number): number | undefined {
  const name = JSON.stringify(calendar)
  const known = timetables.get(name)
  if (known && afterMs >= known.afterMs) {
    const slot = firstAfter(known.slots, afterMs)
    if (slot !== undefined) return slot
  }
  const table = known?.table ?? timetableOf(calendar)
  for (const slots of slotDays(table, calendar.timezone, afterMs)) {
    timetables.set(name, { table, afterMs, slots })
    return slots[0]
  }
  return undefined
}

/** Returns the first of some instants in order that is later than another; undefined if none is. */
function firstAfter(slots: readonly number[], afterMs: number): number | undefined {
  let low = 0
  let high = slots.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (slots[middle]! > afterMs) high = middle
    else low = middle + 1
  }
  return slots[low]
}

/** Returns the first slot after an instant; undefined if no further slot comes. */
export function nextSlot(calendar: Calendar, after: Date): Date | undefined {
  if (calendar.type === 'once' || isElapsed(calendar)) {
    for (const slot of slotsBetween(calendar, after)) return slot
    return undefined
  }
  const { beforeStart, end } = boundsOf(calendar)
  const slot = nextDailySlot(calendar, Math.max(after.getTime(), beforeStart))
  return slot === undefined || slot > end ? undefined : new Date(slot)
}
