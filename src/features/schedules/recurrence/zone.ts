import { LRUCache } from 'lru-cache'

/** Local time is a number of milliseconds, as if the local clock showed UTC. */

export const minuteMs = 60_000
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs

/** A formatter takes 24 KiB and a quarter of a millisecond to build, so those of all zones are kept. */
const formattersMax = 512
const formatters = new LRUCache<string, Intl.DateTimeFormat>({ max: formattersMax })

function formatterOf(zone: string): Intl.DateTimeFormat {
  const known = formatters.get(zone)
  if (known) return known
  const formatter = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  formatters.set(zone, formatter)
  return formatter
}

/** Returns the local time that the clock of a zone shows at an instant. */
export function localTime(zone: string, atMs: number): number {
  if (zone === 'UTC') return atMs
  const shown = formatterOf(zone).format(atMs).split(/\D+/)
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = shown.map(Number)
  return Date.UTC(year, month - 1, day, hour, minute, second) + (((atMs % 1_000) + 1_000) % 1_000)
}

const offsetMs = (zone: string, atMs: number): number => localTime(zone, atMs) - atMs

export const startOfDay = (localMs: number): number => Math.floor(localMs / dayMs) * dayMs

/** A part of a local day with one offset from UTC: the instants from `fromMs` to before `toMs`. */
export type DaySpan = { fromMs: number; toMs: number; offsetMs: number }
/** The spans of a local day, none if the zone skips it; `changeMs` is the instant of an offset change nearby. */
export type ZoneDay = { spans: DaySpan[]; changeMs: number }

/** Clocks of the world are at most 14 hours ahead of UTC and 12 behind. */
const aheadMs = 15 * hourMs
const behindMs = 13 * hourMs

/** Returns the spans of the local day from `day` on; two offset changes within two days are not expected. */
export function zoneDay(zone: string, day: number): ZoneDay {
  let low = day - aheadMs
  let high = day + dayMs + behindMs
  const before = offsetMs(zone, low)
  const after = offsetMs(zone, high)
  const end = day + dayMs
  if (before === after)
    return { spans: [{ fromMs: day - before, toMs: end - before, offsetMs: before }], changeMs: high }
  while (high - low > minuteMs) {
    const middle = low + Math.floor((high - low) / 2 / minuteMs) * minuteMs
    if (offsetMs(zone, middle) === before) low = middle
    else high = middle
  }
  const first = { fromMs: day - before, toMs: Math.min(end - before, high), offsetMs: before }
  const second = { fromMs: Math.max(day - after, high), toMs: end - after, offsetMs: after }
  return { spans: [first, second].filter(({ fromMs, toMs }) => fromMs < toMs), changeMs: high }
}

/** Returns the first instant at which the local clock of the day shows `localMs` or a later time. */
export function firstInstant({ spans, changeMs }: ZoneDay, localMs: number): number {
  const span = spans.find(({ toMs, offsetMs }) => localMs - offsetMs < toMs)
  return span ? Math.max(localMs - span.offsetMs, span.fromMs) : changeMs
}

export const instantOf = (zone: string, localMs: number): number =>
  firstInstant(zoneDay(zone, startOfDay(localMs)), localMs)
