import { readDays, readMoment, readMonthDay, setOrdinals, setWeekdays } from './day-clauses.ts'
import {
  adverbs,
  countWords,
  leapDayRemark,
  leapYearRemark,
  secondsOf,
  shorterMonthRemark,
  type Unit,
  unitOf,
} from './english-words.ts'
import { attempt, type Cursor, readList, readNumber, readTime, set, take, wordAt } from './phrase-cursor.ts'
import type { Parts } from './phrase-parts.ts'
import type { Token } from './phrase-tokens.ts'
import { notUnderstood } from './schedule-error.ts'
import { findZone, isAmbiguousZone, type ZoneReading } from './zone-names.ts'

/** Reads a period such as `15 minutes`, `4h`, `day`, `other day` or `half hour`. */
function setPeriod(cursor: Cursor): boolean {
  const read = attempt(cursor, (): { count: number; unit: Unit } | undefined => {
    const token = cursor.tokens[cursor.at]
    if (token?.kind === 'span') {
      cursor.at++
      return { count: token.value, unit: token.unit }
    }
    if (take(cursor, 'half')) {
      take(cursor, 'an')
      return take(cursor, 'hour') ? { count: 30, unit: 'm' } : undefined
    }
    const isOther = take(cursor, 'other')
    const count = isOther ? 2 : readNumber(cursor)
    const unit = unitOf(wordAt(cursor))
    if (!unit) return undefined
    cursor.at++
    return { count: count ?? 1, unit }
  })
  if (!read) return false
  const { count, unit } = read
  const seconds = secondsOf[unit]
  if (count === 1 && (unit === 'd' || unit === 'w' || unit === 'mo' || unit === 'y'))
    return set(cursor, 'unit', unit)
  if (seconds === undefined) throw notUnderstood('Only one month and one year can be repeated')
  return set(cursor, 'seconds', count * seconds)
}

const dayPartOf = (word: string): Parts['dayPart'] =>
  word === 'morning' || word === 'afternoon' || word === 'evening' ? word : undefined

function readEvery(cursor: Cursor): boolean {
  const { at } = cursor
  take(cursor, 'on')
  if (take(cursor, 'every', 'each')) {
    const dayPart = dayPartOf(wordAt(cursor))
    if (dayPart) {
      cursor.at++
      return set(cursor, 'unit', 'd') && set(cursor, 'dayPart', dayPart)
    }
    if (setPeriod(cursor) || setWeekdays(cursor, { isEvery: true }) || setOrdinals(cursor, { isEvery: true }))
      return true
    const yearly = readMonthDay(cursor)
    if (yearly)
      return (
        set(cursor, 'unit', 'y') &&
        set(cursor, 'months', [yearly.month]) &&
        set(cursor, 'monthDays', [yearly.day])
      )
  }
  cursor.at = at
  return false
}

/** Reads a count such as `daily`, `once a day`, `three times a week` or `once`. */
function readCount(cursor: Cursor): boolean {
  const adverb = adverbs.get(wordAt(cursor))
  if (adverb === 'h') {
    cursor.at++
    return set(cursor, 'seconds', 3_600)
  }
  if (adverb !== undefined) {
    cursor.at++
    return set(cursor, 'unit', adverb)
  }
  const counted = attempt(cursor, () => {
    const named = countWords.get(wordAt(cursor))
    if (named !== undefined) cursor.at++
    const count = named === undefined ? readNumber(cursor) : Number(named)
    if (count === undefined || (named === undefined && !take(cursor, 'times'))) return undefined
    const adverbBehind = adverbs.get(wordAt(cursor))
    const isPer = adverbBehind === undefined && take(cursor, 'a', 'an', 'per', 'every', 'each')
    const unit = adverbBehind ?? (isPer ? unitOf(wordAt(cursor)) : undefined)
    if (unit === 'd' || unit === 'w' || unit === 'mo' || unit === 'y') {
      cursor.at++
      return { count, unit }
    }
    return undefined
  })
  if (counted) return set(cursor, 'count', counted.count) && set(cursor, 'unit', counted.unit)
  if (!take(cursor, 'once')) return false
  return wordAt(cursor) === 'every' || set(cursor, 'isOnce', true)
}

/** Reads times such as `at 9 and 17:30`, `9am`, `noon` or `in the morning`. */
function readTimes(cursor: Cursor): boolean {
  const dayPart = attempt(cursor, () => {
    if (take(cursor, 'in') && !take(cursor, 'the')) return undefined
    const word = wordAt(cursor)
    cursor.at++
    return dayPartOf(word)
  })
  if (dayPart !== undefined) return set(cursor, 'dayPart', dayPart)
  const times = attempt(cursor, () => {
    const isBareAllowed = take(cursor, 'at')
    return readList(cursor, () => {
      take(cursor, 'at')
      return readTime(cursor, { isBareAllowed })
    })
  })
  return times ? set(cursor, 'times', times) : false
}

/** Reads a window of the day such as `from 9 to 17`, `between 9am and 5pm` or `9:00-17:00`. */
function readWindow(cursor: Cursor): boolean {
  const window = attempt(cursor, () => {
    const isBetween = take(cursor, 'between')
    const isBareAllowed = isBetween || take(cursor, 'from') || cursor.tokens[cursor.at + 1]?.text === '-'
    const from = readTime(cursor, { isBareAllowed })
    const isJoined = isBetween ? take(cursor, 'and') : take(cursor, 'to', 'until', 'till', 'through')
    const to = from && isJoined ? readTime(cursor, { isBareAllowed: true }) : undefined
    return from && to ? { from, to } : undefined
  })
  return window ? set(cursor, 'window', window) : false
}

/** Reads a bound such as `starting 2026-12-01` or `until 31 December`. */
function readBounds(cursor: Cursor): boolean {
  const bound = attempt(cursor, () => {
    if (take(cursor, 'counted') && wordAt(cursor) !== 'from') return undefined
    const isStart = take(cursor, 'starting', 'beginning', 'from')
    if (!isStart && !take(cursor, 'until', 'till', 'through', 'ending')) return undefined
    const moment = readMoment(cursor, { hasTime: true })
    return moment && { isStart, moment }
  })
  return bound ? set(cursor, bound.isStart ? 'starts' : 'ends', bound.moment) : false
}

/** Sets the zone; a wrong name is kept until it is known whether the other words are a schedule. */
function setZone(cursor: Cursor, name: string, found: ZoneReading | undefined): boolean {
  if (found) return set(cursor, 'zone', found)
  cursor.unknownZone = name
  return true
}

/** Reads a time zone such as `Europe/Berlin`, `in New York` or `Tokyo time`. */
function readZoneName(cursor: Cursor): boolean {
  const { tokens } = cursor
  // A phrase has at most one zone, and it is slow to check further words for the name of one.
  if (cursor.unknownZone !== undefined) return false
  const isIn = take(cursor, 'in')
  const token = tokens[cursor.at]
  if (token?.kind === 'zone' || token?.kind === 'offset') {
    cursor.at++
    return setZone(cursor, token.text, findZone(token.text))
  }
  for (const length of [3, 2, 1]) {
    const named = tokens.slice(cursor.at, cursor.at + length)
    if (named.length < length || named.some(({ kind }) => kind !== 'word')) continue
    const name = named.map(({ text }) => text).join(' ')
    const isNamed = isIn || wordAt(cursor, 1) === 'time' || isAmbiguousZone(name)
    const isCertain = length === 1 && isNamed
    const found = findZone(name)
    if (!found && !isCertain) continue
    cursor.at += length
    take(cursor, 'time')
    return setZone(cursor, name, found)
  }
  if (isIn) cursor.at--
  return false
}

/**
 * Remarks in generated descriptions of schedules. They add nothing to the days that the phrase names, so the reader
 * skips them.
 */
const remarks = [shorterMonthRemark, leapYearRemark, leapDayRemark].map((text) => text.split(' '))

function readRemark(cursor: Cursor): boolean {
  if (take(cursor, ',', 'and', '(', ')', 'then', '.')) return true
  const { tokens, at } = cursor
  const remark = remarks.find((words) => words.every((word, ahead) => tokens[at + ahead]?.text === word))
  cursor.at += remark?.length ?? 0
  return remark !== undefined
}

const clauses = [readRemark, readEvery, readCount, readWindow, readTimes, readBounds, readDays, readZoneName]

/**
 * The reading stops after this many words that are not understood. A trial, which only tests whether a text is a
 * schedule, stops after the first one.
 */
const unreadWordsMax = 20

type Clauses = Pick<Cursor, 'parts' | 'unknownZone'> & { unread: string[] }

/** Reads all clauses of a phrase; a token that belongs to no clause is returned as unread. */
export function readClauses(tokens: readonly Token[], { isTrial }: { isTrial: boolean }): Clauses {
  const cursor: Cursor = { tokens, at: 0, parts: {} }
  const unreadMax = isTrial ? 1 : unreadWordsMax
  const unread: string[] = []
  while (cursor.at < tokens.length && unread.length < unreadMax) {
    if (clauses.some((read) => read(cursor))) continue
    unread.push(tokens[cursor.at]?.text ?? '')
    cursor.at++
  }
  const { parts, unknownZone } = cursor
  return { parts, unread, ...(unknownZone !== undefined && { unknownZone }) }
}
