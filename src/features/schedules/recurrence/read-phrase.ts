import { normalise } from '#grammar/lex.ts'
import { timeText } from './calendar-to-timetable.ts'
import { type ScheduleFields, weekdays } from './calendar-types.ts'
import { readClauses } from './clauses.ts'
import { listText, monthNames, weekdayNames } from './english-words.ts'
import type { ClockTime, Moment, NamedDay, Parts } from './phrase-parts.ts'
import { type Token, tokensOf } from './phrase-tokens.ts'
import { neverFires, notUnderstood, ScheduleError } from './schedule-error.ts'
import { dayMs, instantOf, localTime, minuteMs, startOfDay } from './zone.ts'
import { unknownZoneError, type ZoneReading } from './zone-names.ts'

/** This module reads a schedule in words into the fields that a client could have sent instead. */

type Context = { zone: string; now: Date; parts: Parts }

const phraseLengthMax = 500
const noon = 12 * 60
const secondMs = 1_000

/** Returns minutes after midnight; `9 and 10 pm` is refused, because 9 may mean nine in the morning. */
function clockMinutes(times: readonly ClockTime[], dayPart: Parts['dayPart']): number[] {
  const isPlain = ({ form, minute }: ClockTime) => form === 'plain' && minute >= 60 && minute < noon + 60
  if (times.some(({ form }) => form === 'meridiem') && times.some(isPlain))
    throw notUnderstood('Some times have am or pm and others may be either: write 9am, 9pm or 21:00')
  return times.map(({ minute, form }) => {
    if (dayPart === undefined) return minute
    const isOther = dayPart === 'morning' ? minute >= noon : minute < noon && form !== 'plain'
    if (isOther) throw notUnderstood(`${timeText(minute)} is not in the ${dayPart}`)
    return dayPart === 'morning' || minute >= noon ? minute : minute + noon
  })
}

/** Returns the next instant of a day of the year; a leap day may be up to eight years ahead. */
function nextYearly(
  { zone, now }: Context,
  { month, day, minute }: { month: number; day: number; minute: number },
) {
  const year = new Date(localTime(zone, now.getTime())).getUTCFullYear()
  for (let ahead = 0; ahead <= 8; ahead++) {
    const start = Date.UTC(year + ahead, month - 1, day)
    if (new Date(start).getUTCDate() !== day) continue
    const at = instantOf(zone, start + minute * minuteMs)
    if (at > now.getTime()) return at
  }
  throw neverFires(`${monthNames[month - 1]} has no day ${day}`)
}

function dayInstant(context: Context, day: NamedDay, minute: number): number {
  const { zone, now } = context
  const today = startOfDay(localTime(zone, now.getTime()))
  if (day.type === 'yearly') return nextYearly(context, { month: day.month, day: day.day, minute })
  const ahead =
    day.type === 'ahead'
      ? day.days
      : day.type === 'weekday'
        ? (day.weekday - new Date(today).getUTCDay() + 7) % 7 || 7
        : 0
  const start = day.type === 'date' ? day.day : today + ahead * dayMs
  return instantOf(zone, start + minute * minuteMs)
}

function momentInstant(context: Context, moment: Moment, { isEnd = false } = {}): number {
  if (moment.type === 'instant') return moment.ms
  if (moment.type === 'local') return instantOf(context.zone, moment.ms)
  if (moment.minute !== undefined || !isEnd) return dayInstant(context, moment.day, moment.minute ?? 0)
  return dayInstant(context, moment.day, 24 * 60) - secondMs
}

const isoOf = (ms: number): string => new Date(ms).toISOString()
const contradiction = () => notUnderstood('The parts of the schedule do not fit together')

/** Throws if a phrase has a part other than `names`, so that no part is ignored. */
function assertOnly(parts: Parts, names: readonly (keyof Parts)[]): void {
  if (Object.keys(parts).some((name) => !names.some((each) => each === name))) throw contradiction()
}

type OneDay = { moment: Moment; names: readonly (keyof Parts)[] }

/** Returns the moment of a phrase that runs once, and the parts that name it; a day without `every` is one day. */
function namedMoment({ moment, isOnce, weekdays: named, isOneWeekday, ...parts }: Parts): OneDay | undefined {
  if (moment) return { moment, names: ['moment'] }
  const [weekday] = named ?? []
  if (isOnce && isOneWeekday && weekday !== undefined)
    return { moment: { type: 'day', day: { type: 'weekday', weekday } }, names: ['weekdays', 'isOneWeekday'] }
  const [day = -1, ...moreDays] = parts.monthDays ?? []
  const [month, ...moreMonths] = parts.months ?? []
  const isSeveral = moreDays.length + moreMonths.length > 0
  if (parts.unit || parts.seconds !== undefined || month === undefined || day < 1 || isSeveral)
    return undefined
  return { moment: { type: 'day', day: { type: 'yearly', month, day } }, names: ['monthDays', 'months'] }
}

function onceFields(context: Context, oneDay: OneDay | undefined): ScheduleFields {
  const { now, parts } = context
  const { aheadSeconds, times, dayPart } = parts
  if (aheadSeconds !== undefined) {
    assertOnly(parts, ['aheadSeconds', 'isOnce', 'zone'])
    return { type: 'once', at: isoOf(now.getTime() + aheadSeconds * secondMs) }
  }
  if (!oneDay) throw notUnderstood('The schedule runs once: add its day, such as "tomorrow at 9am"')
  const { moment, names } = oneDay
  if (moment.type !== 'day') {
    assertOnly(parts, ['moment', 'isOnce', 'zone'])
    return { type: 'once', at: isoOf(momentInstant(context, moment)) }
  }
  assertOnly(parts, [...names, 'times', 'dayPart', 'isOnce', 'zone'])
  const [minute, ...more] = clockMinutes(times ?? [], dayPart)
  if (minute === undefined || more.length > 0)
    throw notUnderstood('The schedule runs once: add one time of the day')
  return { type: 'once', at: isoOf(dayInstant(context, moment.day, minute)) }
}

/** Returns the days of a calendar; `weekly`, `monthly` and `yearly` alone take the day of their start. */
function dayFields({ parts, zone, now }: Context, startMs: number | undefined): Partial<ScheduleFields> {
  const { unit, nth, seconds, isOneWeekday } = parts
  let { weekdays: named, monthDays, months } = parts
  if ([named, monthDays, nth].filter((each) => each !== undefined).length > 1) throw contradiction()
  if (isOneWeekday && unit !== 'w') throw unclearWeekday(named?.[0] ?? 0, parts)
  if (nth && months?.length === 1 && unit !== 'y')
    throw notUnderstood('The day may be one day or one of each year: add "every year"')
  const start = new Date(localTime(zone, startMs ?? now.getTime()))
  const hasDay = named ?? monthDays ?? nth
  const isAlone = !hasDay && !months && seconds === undefined
  if (unit === 'w' && isAlone) named = [start.getUTCDay()]
  else if (unit === 'mo' && isAlone) monthDays = [start.getUTCDate()]
  else if (unit === 'y' && isAlone) {
    monthDays = [start.getUTCDate()]
    months = [start.getUTCMonth() + 1]
  } else if (
    (unit === 'w' && !named) ||
    (unit === 'mo' && !(monthDays ?? nth)) ||
    (unit === 'y' && !months) ||
    (unit === 'd' && (monthDays ?? nth))
  )
    throw contradiction()
  return {
    ...(named && { days: named.flatMap((day) => weekdays[day] ?? []) }),
    ...(monthDays && { month_days: monthDays }),
    ...(nth && { nth: { n: nth.n, day: weekdays[nth.weekday] ?? 'sun' } }),
    ...(months && { months }),
  }
}

function unclearWeekday(weekday: number, { times = [] }: Parts) {
  const name = weekdayNames[weekday] ?? ''
  const at = times.length === 0 ? '' : ` at ${listText(times.map(({ minute }) => timeText(minute)))}`
  return notUnderstood(`"${name}" may be the next one or each one`, {
    suggestions: [`every ${name}${at}`, `next ${name}${at}`],
  })
}

const daysAndBounds = [
  'weekdays',
  'isOneWeekday',
  'monthDays',
  'nth',
  'months',
  'starts',
  'ends',
  'zone',
] as const

function boundFields(context: Context): Partial<ScheduleFields> {
  const { starts, ends } = context.parts
  return {
    ...(starts && { starts_at: isoOf(momentInstant(context, starts)) }),
    ...(ends && { ends_at: isoOf(momentInstant(context, ends, { isEnd: true })) }),
  }
}

function intervalFields(context: Context, every_seconds: number): ScheduleFields {
  const { parts } = context
  const { window } = parts
  assertOnly(parts, ['seconds', 'unit', 'window', ...daysAndBounds])
  const fields = { type: 'interval' as const, every_seconds, ...boundFields(context) }
  const days = dayFields(context, undefined)
  if (!window) return { ...fields, ...days }
  const [from = 0, to = 0] = clockMinutes([window.from, window.to], undefined)
  return { ...fields, ...days, from: timeText(from), to: timeText(to) }
}

function calendarFields(context: Context): ScheduleFields {
  const { parts, zone, now } = context
  const { unit, times, window, count, starts, dayPart, weekdays: named, monthDays, nth, months } = parts
  if (window) throw notUnderstood('The schedule has hours and no rhythm: add one, such as "every 15 minutes"')
  assertOnly(parts, ['unit', 'count', 'times', 'dayPart', ...daysAndBounds])
  const hasDay = named ?? monthDays ?? nth
  if (!unit && !hasDay)
    throw notUnderstood('The schedule does not say how often: add "every day" or another rhythm')
  if (!times && (hasDay ?? months ?? dayPart))
    throw notUnderstood('The schedule has no time of the day: add one, such as "at 9:00"')
  const startMs = starts && momentInstant(context, starts)
  const startMinute = Math.floor((localTime(zone, startMs ?? now.getTime()) % dayMs) / minuteMs)
  const minutes = times ? clockMinutes(times, dayPart) : [startMinute]
  const days = dayFields(context, startMs)
  const perDay = new Set(minutes).size
  const perUnit = unit === 'd' ? perDay : perDay * (named ?? monthDays ?? [0]).length
  if (count !== undefined && count !== perUnit)
    throw notUnderstood(`The schedule says ${count} times and names ${perUnit}: name each time of the day`)
  return { type: 'calendar', times: minutes.map(timeText), ...days, ...boundFields(context) }
}

/**
 * Returns the tokens of a phrase; throws if the phrase is too long. Normalisation can lengthen the text, so the length
 * is checked after it.
 */
function tokensIn(phrase: string): Token[] {
  const text = phrase.length > phraseLengthMax ? phrase : normalise(phrase)
  if (text.length > phraseLengthMax)
    throw notUnderstood(`A schedule has at most ${phraseLengthMax} characters`)
  return tokensOf(text)
}

/** Returns the refusal of an unknown time zone in a trial, without a search for the zones that may have been meant. */
const unnamedZone = (name: string) =>
  new ScheduleError({ field: 'schedule', type: 'unknown_zone', msg: `There is no time zone "${name}"` })

/** Returns the fields of a phrase; throws a refusal unless every word of the phrase is understood. */
export function readPhrase(
  phrase: string,
  { now, timezone, isTrial = false }: { now: Date; timezone: string; isTrial?: boolean },
): { fields: ScheduleFields; zone?: ZoneReading } {
  const { parts, unread, unknownZone } = readClauses(tokensIn(phrase), { isTrial })
  if (unread.length > 0)
    throw notUnderstood(`The schedule was not understood: ${listText(unread.map((text) => `"${text}"`))}`, {
      unread,
    })
  const context = { zone: parts.zone?.zone ?? timezone, now, parts }
  const oneDay = namedMoment(parts)
  const { seconds, isOnce, aheadSeconds, zone } = parts
  const fields =
    oneDay || isOnce || aheadSeconds !== undefined
      ? onceFields(context, oneDay)
      : seconds === undefined
        ? calendarFields(context)
        : intervalFields(context, seconds)
  // An unknown zone is reported only after the other words were understood: "in total" reads like a zone, but is no
  // schedule.
  if (unknownZone !== undefined)
    throw isTrial ? unnamedZone(unknownZone) : unknownZoneError(unknownZone, 'schedule', now)
  return { fields, ...(zone && { zone }) }
}
