import {
  createReader,
  indexOf,
  indexWhere,
  quantityAt,
  type Reader,
  type Slots,
  take,
} from './clause-reader.ts'
import { months, weekdays } from './english/word-lists.ts'
import { list } from './feature-rules.ts'
import type { Quantity } from './quantity.ts'
import { has } from './tag.ts'
import { wordSet } from './word-maps.ts'

/** Reads periods in the past, timeframes of candles, and moments in the future, all in UTC. */

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const spanMs: Readonly<Record<string, number>> = {
  m: minuteMs,
  h: hourMs,
  d: dayMs,
  w: 7 * dayMs,
  mo: 30 * dayMs,
  y: 365 * dayMs,
}
const countMax = 10_000

/** Writes a span as a period in one spelling: `24h` becomes a day and `7d` a week. */
export function periodText({ value, span = 'd' }: Quantity): string | undefined {
  if (!/^[1-9]\d{0,3}$/.test(value)) return undefined
  const count = Number(value)
  if (span === 'h' && count % 24 === 0)
    return periodText({ unit: 'span', value: String(count / 24), span: 'd' })
  if (span === 'd' && count === 30) return '1mo'
  if (span === 'd' && count === 90) return '3mo'
  if (span === 'd' && count % 7 === 0 && count <= 28) return `${count / 7}w`
  if (span === 'd' && count === 365) return '1y'
  return `${count}${span}`
}

const startOfDay = (ms: number): number => Math.floor(ms / dayMs) * dayMs
const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
const msOf = (date: string): number => Date.parse(`${date}T00:00:00Z`)

/** Returns the range of time that a period covers; undefined for the period `all`, which has no bounds. */
export function rangeOf(period: string, nowMs: number): { fromMs: number; toMs: number } | undefined {
  if (period === 'all') return undefined
  if (period === 'yesterday') return { fromMs: startOfDay(nowMs) - dayMs, toMs: startOfDay(nowMs) }
  const since = /^since:(\d{4}-\d{2}-\d{2})$/.exec(period)
  if (since) return { fromMs: msOf(since[1] ?? ''), toMs: nowMs }
  const days = /^from:(\d{4}-\d{2}-\d{2})\/(\d{4}-\d{2}-\d{2})$/.exec(period)
  if (days) return { fromMs: msOf(days[1] ?? ''), toMs: msOf(days[2] ?? '') + dayMs }
  const span = /^(\d{1,4})(mo|[mhdwy])$/.exec(period)
  return span ? { fromMs: nowMs - Number(span[1]) * (spanMs[span[2] ?? ''] ?? 0), toMs: nowMs } : undefined
}

const spanNames: Readonly<Record<string, string>> = {
  m: 'minutes',
  h: 'hours',
  d: 'days',
  mo: 'days',
  y: 'days',
  w: 'days',
}

/** Says a day with its weekday: `Monday, 30 November 2026`. */
function dayWords(date: string): string {
  const day = new Date(msOf(date))
  const capital = (word = '') => `${word.charAt(0).toUpperCase()}${word.slice(1)}`
  return `${capital(weekdays[day.getUTCDay()])}, ${day.getUTCDate()} ${capital(months[day.getUTCMonth()])} ${day.getUTCFullYear()}`
}

/** Says a period in words, such as `the last 7 days`. */
export function periodWords(period: string): string | undefined {
  if (period === 'yesterday') return 'yesterday'
  if (period === '1d') return 'the last 24 hours'
  const [kind = '', dates = ''] = period.split(':')
  if (kind === 'since') return `the time since ${dayWords(dates)}`
  if (kind === 'from') {
    const [from = '', to = ''] = dates.split('/')
    return from === to ? dayWords(from) : `${dayWords(from)} to ${dayWords(to)}`
  }
  const span = /^(\d{1,4})(mo|[mhdwy])$/.exec(period)
  if (!span) return undefined
  const unit = span[2] ?? ''
  const inDays = 'wmoy'.includes(unit) && unit !== 'm'
  const count = inDays ? (Number(span[1]) * (spanMs[unit] ?? 0)) / dayMs : Number(span[1])
  return `the last ${count} ${spanNames[unit]}`
}

/** Returns the time that a read of the past covers: the last day, if the user said none. */
export const periodOf = ({ period = '1d' }: Slots): string => (period === 'all' ? '1y' : period)

const phrasePeriods = list('~1d ~yesterday ~1w ~1mo ~3mo ~1y ~all')

/** Returns the date that begins at a position, with the positions of its words: `march 15`, `2026-03-15`. */
function dateAt(
  reader: Reader,
  at: number,
  nowMs: number,
): { from: string; to: string; taken: number[] } | undefined {
  const quantity = quantityAt(reader, at)
  if (quantity?.unit === 'date') return { from: quantity.value, to: quantity.value, taken: [at] }
  const words = reader.taken.has(at) ? undefined : reader.tokens[at]?.words
  const weekday = weekdays.indexOf(words ?? '')
  if (weekday >= 0) {
    const behind = (new Date(nowMs).getUTCDay() - weekday + 7) % 7 || 7
    const date = dateOf(startOfDay(nowMs) - behind * dayMs)
    return { from: date, to: date, taken: [at] }
  }
  const month = months.indexOf(words ?? '')
  if (month < 0) return undefined
  const now = new Date(nowMs)
  // A month without a year is the last one that has begun.
  const year = now.getUTCFullYear() - (month > now.getUTCMonth() ? 1 : 0)
  const day = quantityAt(reader, at + 1)
  const number =
    day?.unit === 'number' && /^([1-9]|[12]\d|3[01])$/.test(day.value) ? Number(day.value) : undefined
  const first = Date.UTC(year, month, number ?? 1)
  const last = number === undefined ? Date.UTC(year, month + 1, 1) - dayMs : first
  return { from: dateOf(first), to: dateOf(last), taken: number === undefined ? [at] : [at, at + 1] }
}

/** Reads days by their names: since monday, in march, between two dates. */
function readDays(reader: Reader, slots: Slots, nowMs: number): boolean {
  const begins = (at: number) => {
    const before = reader.tokens[at - 1]
    return has(before, 'PAST_SPAN', 'FROM', 'ON', 'IN', 'BETWEEN', 'OF') || before?.quantity !== undefined
  }
  for (const at of reader.tokens.keys()) {
    const found = begins(at) ? dateAt(reader, at, nowMs) : undefined
    if (!found) continue
    const next = found.taken.at(-1)! + 1
    const before = reader.tokens[at - 1]
    const isRange = has(before, 'FROM', 'BETWEEN') && has(reader.tokens[next], 'AND', 'TO', 'UNTIL')
    const end = isRange ? dateAt(reader, next + 1, nowMs) : undefined
    take(reader, ...found.taken, ...(end?.taken ?? []))
    const isOpen = has(before, 'PAST_SPAN') && before?.words.endsWith('since') === true
    slots.period =
      isOpen || (has(before, 'FROM') && !end)
        ? `since:${found.from}`
        : `from:${found.from}/${(end ?? found).to}`
    return true
  }
  return false
}

export function readPeriod(reader: Reader, slots: Slots, nowMs: number): void {
  const spanned = indexWhere(reader, ({ quantity }) => quantity?.unit === 'span' && !quantity.isUnclear)
  const span = quantityAt(reader, spanned)
  const text = span ? periodText(span) : undefined
  if (text !== undefined) {
    take(reader, spanned)
    slots.period = text
    return
  }
  if (readDays(reader, slots, nowMs)) return
  for (const concept of phrasePeriods) {
    const at = indexOf(reader, concept)
    if (at < 0) continue
    take(reader, at)
    slots.period = concept.slice(1)
    return
  }
}

/** Returns the time of the past that a clause names; undefined if it names none, or only now or the present day. */
export function windowOf(
  { tokens, names }: Pick<Reader, 'tokens' | 'names'>,
  nowMs: number,
): string | undefined {
  const slots: Slots = {}
  readPeriod(createReader(tokens, names, []), slots, nowMs)
  const { period } = slots
  return period === '1d' || period === 'all' ? undefined : period
}

const timeframes = wordSet('1m 3m 5m 15m 30m 1h 2h 4h 8h 12h 1d 3d 1w 1mo')

/** Reads the timeframe of a chart: `5m` means five minutes here. */
export function readTimeframe(reader: Reader, slots: Slots): void {
  const at = indexWhere(
    reader,
    ({ quantity }) => quantity?.unit === 'span' && timeframes.has(`${quantity.value}${quantity.span}`),
  )
  const span = quantityAt(reader, at)
  const before = reader.tokens[at - 1]
  if (span && !has(before, 'PAST_SPAN')) {
    take(reader, at)
    slots.timeframe = `${span.value}${span.span}`
    return
  }
  for (const concept of list('tf1d tf1h tf1w'))
    if (indexOf(reader, concept) >= 0) slots.timeframe = concept.slice(2)
}

/**
 * Reads a moment in the future, such as the expiry of an order; undefined if the clause has none or it has passed.
 */
export function readMoment(reader: Reader, nowMs: number): { ms: number; taken: number[] } | undefined {
  const anchor = indexOf(reader, 'UNTIL')
  if (anchor < 0) return undefined
  for (let at = anchor + 1; at <= anchor + 3; at++) {
    const token = reader.tokens[at]
    const quantity = quantityAt(reader, at)
    if (quantity?.unit === 'span' && /^\d{1,4}$/.test(quantity.value) && Number(quantity.value) < countMax) {
      const ms = spanMs[quantity.span ?? ''] ?? 0
      return { ms: nowMs + Number(quantity.value) * ms, taken: [at] }
    }
    if (quantity?.unit === 'date') {
      const ms = Date.parse(`${quantity.value}T23:59:59.999Z`)
      return Number.isFinite(ms) && ms > nowMs ? { ms, taken: [at] } : undefined
    }
    const weekday = weekdays.indexOf(token?.words ?? '')
    if (weekday >= 0) {
      const ahead = (weekday - new Date(nowMs).getUTCDay() + 7) % 7 || 7
      return { ms: startOfDay(nowMs) + (ahead + 1) * dayMs - 1, taken: [at] }
    }
    if (has(token, 'TOMORROW')) return { ms: startOfDay(nowMs) + 2 * dayMs - 1, taken: [at] }
    if (has(token, 'FUTURE')) return { ms: startOfDay(nowMs) + dayMs - 1, taken: [at] }
  }
  return undefined
}

export function readExpiry(reader: Reader, slots: Slots, nowMs: number): void {
  const moment = readMoment(reader, nowMs)
  if (!moment) return
  take(reader, ...moment.taken)
  slots.expires = new Date(moment.ms).toISOString()
}

/**
 * Whether the clause names a later time or a repetition, such as "at 9:00" or "every monday": a chat cannot run an
 * order then.
 */
export const isTimed = ({ tokens }: Pick<Reader, 'tokens'>): boolean => {
  const until = tokens.findIndex((token) => has(token, 'UNTIL'))
  // The time until which an order waits is not a time at which the order begins.
  const isEnd = (at: number): boolean => until >= 0 && at > until && at <= until + 3
  return tokens.some((token, at) => {
    if (isEnd(at)) return false
    const next = tokens[at + 1]
    if (has(token, 'SCHEDULE', 'FUTURE', 'WEEKDAY') || token.quantity?.unit === 'clock') return true
    if (has(token, 'EVERY'))
      return has(next, 'WEEKDAY', '~1d', '~1w', '~1mo') || next?.quantity?.unit === 'span'
    return has(token, 'IN') && next?.quantity?.unit === 'span'
  })
}
