import { canonicalJson } from '#kernel/wire/json.ts'
import { optionsOf, type PlanInput, refused } from './plan.ts'
import { type Calendar, isElapsed } from './recurrence/calendar-types.ts'
import { readSchedule } from './recurrence/read-schedule.ts'
import { strategySecondsMin } from './schedule-schemas.ts'
import type { ReadCalendar } from './split-sentence.ts'

/** The times of a strategy that decides on closes: an interval on the grid of its candles. */

type Closes = { now: Date; spanSeconds: number }

/** Returns the first close at or after a time. */
const closeFrom = (ms: number, spanSeconds: number): string => {
  const spanMs = spanSeconds * 1_000
  return new Date(Math.ceil(ms / spanMs) * spanMs).toISOString()
}

/** Returns the calendar of the closes; the stored one, unless the input changes the candles, the zone or a bound. */
export function closesCalendar(
  stored: Calendar | null,
  { timezone, starts_at, ends_at }: Pick<PlanInput, 'timezone' | 'starts_at' | 'ends_at'>,
  { now, spanSeconds }: Closes,
): ReadCalendar {
  const known = stored && isElapsed(stored) && stored.every_seconds === spanSeconds ? stored : undefined
  const isSame = known && [timezone, starts_at, ends_at].every((each) => each === undefined)
  if (isSame) return { calendar: known, notes: [] }
  const zone = timezone ?? stored?.timezone
  const ends = ends_at === undefined ? stored?.ends_at : ends_at
  const start = starts_at ? Date.parse(starts_at) : Number.NaN
  const from = Number.isNaN(start) ? (known ? Date.parse(known.starts_at) : now.getTime()) : start
  const fields = {
    type: 'interval' as const,
    every_seconds: spanSeconds,
    starts_at: closeFrom(from, spanSeconds),
  }
  const reading = readSchedule(
    fields,
    optionsOf({ timezone: zone, ends_at: ends }, { now, secondsMin: strategySecondsMin }),
  )
  if ('refusal' in reading) throw refused(reading.refusal)
  return canonicalJson(reading.calendar) === canonicalJson(stored)
    ? { calendar: stored!, notes: [] }
    : reading
}
