import { numerals, spanWords } from '#grammar/english/number-and-unit-words.ts'
import { byWord, wordSet } from '#grammar/word-maps.ts'

/** These are the English words that name times in schedules. */

export const weekdayNames = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')
export const monthNames =
  'January February March April May June July August September October November December'.split(' ')

const allDays = [1, 2, 3, 4, 5, 6, 0]
export const workdays = allDays.slice(0, 5)
const shortWeekdays = byWord({
  0: 'sun',
  1: 'mon',
  2: 'tue|tues',
  3: 'wed|weds',
  4: 'thu|thur|thurs',
  5: 'fri',
  6: 'sat',
})
const weekdayNumbers: ReadonlyMap<string, number> = new Map(
  weekdayNames.map((name, at) => [name.toLowerCase(), at]),
)
const monthNumbers: ReadonlyMap<string, number> = new Map([
  ...monthNames.flatMap((name, at) =>
    [name, name.slice(0, 3)].map((each) => [each.toLowerCase(), at + 1] as const),
  ),
  ['sept', 9],
])
const groups: ReadonlyMap<string, number[]> = new Map([
  ['weekday', workdays],
  ['workday', workdays],
  ['weekend', [6, 0]],
])

/** Returns the weekdays that a word names; a plural and a group such as `weekdays` mean each of them. */
export function weekdaysOf(word: string): { days: number[]; isEach: boolean } | undefined {
  const singular = word.replace(/s$/, '')
  const group = groups.get(singular)
  if (group) return { days: group, isEach: true }
  const named = weekdayNumbers.get(singular)
  const at = named ?? Number(shortWeekdays.get(word) ?? -1)
  return at < 0 ? undefined : { days: [at], isEach: named !== undefined && word !== singular }
}

/** Returns the number of a month, from 1; `may` and `mar` count where a month can stand. */
export const monthOf = (word: string): number | undefined => monthNumbers.get(word)

const ordinalNames =
  'first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth'.split(
    '|',
  )
/** Reads an ordinal such as `first` or `twenty first`; `count` is how many words it takes. */
export function ordinalOf(word: string, next: string): { value: number; count: number } | undefined {
  if (word === 'thirtieth') return { value: 30, count: 1 }
  const tens = numerals.get(word)
  const ones = ordinalNames.indexOf(next) + 1
  if ((tens === 20 || tens === 30) && ones > 0 && ones < 10) return { value: tens + ones, count: 2 }
  const value = ordinalNames.indexOf(word) + 1
  return value === 0 ? undefined : { value, count: 1 }
}

/** Reads a number such as `nine` or `forty five`; `count` is how many words it takes. */
export function numeralOf(word: string, next: string): { value: number; count: number } | undefined {
  const value = numerals.get(word)
  if (value === undefined) return undefined
  const ones = numerals.get(next)
  const isPair = value >= 20 && ones !== undefined && ones < 10
  return isPair ? { value: value + ones, count: 2 } : { value, count: 1 }
}

export type Unit = 's' | 'm' | 'h' | 'd' | 'w' | 'mo' | 'y'
const secondWords = wordSet('seconds secs sec')
export const unitOf = (word: string): Unit | undefined =>
  secondWords.has(word) ? 's' : word === 'hourly' ? undefined : spanWords.get(word)

/** The seconds of each unit of time; a month and a year are missing, because their length varies. */
export const secondsOf: Readonly<Partial<Record<Unit, number>>> = {
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 604_800,
}

/** Adverbs that say how often a schedule runs, without a number. */
export const adverbs = byWord({ h: 'hourly', d: 'daily', w: 'weekly', mo: 'monthly', y: 'yearly|annually' })
export const countWords = byWord({ 1: 'once', 2: 'twice', 3: 'thrice' })
export const clockWords: ReadonlyMap<string, number> = new Map([
  ['midnight', 0],
  ['noon', 12 * 60],
  ['midday', 12 * 60],
])

export const listText = (items: readonly string[]): string =>
  items.length < 2 ? (items[0] ?? '') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`

export const shorterMonthRemark = 'or the last day of a shorter month'
export const leapYearRemark = 'only in leap years'
export const leapDayRemark = 'the 29th only in leap years'
