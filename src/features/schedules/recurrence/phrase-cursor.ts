import { clockWords, monthOf, numeralOf, unitOf } from './english-words.ts'
import type { ClockTime, Parts } from './phrase-parts.ts'
import type { Token } from './phrase-tokens.ts'
import { notUnderstood } from './schedule-error.ts'

/** A place in a phrase. Each read function reads the words that it knows there, or leaves the cursor in place. */
export type Cursor = {
  tokens: readonly Token[]
  at: number
  parts: Parts
  /** The first name that stands in the position of a time zone, but is not the name of a zone. */
  unknownZone?: string
}

export const wordAt = ({ tokens, at }: Cursor, ahead = 0): string => tokens[at + ahead]?.word ?? ''

export function take(cursor: Cursor, ...words: string[]): boolean {
  if (!words.includes(wordAt(cursor))) return false
  cursor.at++
  return true
}

/** Calls `read`, and moves the cursor back if `read` finds nothing. */
export function attempt<T>(cursor: Cursor, read: () => T | undefined): T | undefined {
  const { at } = cursor
  const found = read()
  if (found === undefined) cursor.at = at
  return found
}

/** Sets one part of a phrase; throws if the phrase has said another value for that part before. */
export function set<Name extends keyof Parts>(
  cursor: Cursor,
  name: Name,
  value: NonNullable<Parts[Name]>,
): true {
  const before = cursor.parts[name]
  if (before !== undefined && JSON.stringify(before) !== JSON.stringify(value))
    throw notUnderstood('The schedule says two different things: keep one of them')
  cursor.parts[name] = value
  return true
}

/** Reads a list such as `a, b and c`; words behind a comma that are no further item are left to the next clause. */
export function readList<T>(cursor: Cursor, read: () => T | undefined): T[] | undefined {
  const first = attempt(cursor, read)
  if (first === undefined) return undefined
  const items = [first]
  for (;;) {
    const next = attempt(cursor, () => {
      const isComma = take(cursor, ',')
      return take(cursor, 'and') || isComma ? read() : undefined
    })
    if (next === undefined) return items
    items.push(next)
  }
}

export function readNumber(cursor: Cursor): number | undefined {
  const token = cursor.tokens[cursor.at]
  if (token?.kind === 'number') {
    cursor.at++
    return token.value
  }
  const numeral = numeralOf(wordAt(cursor), wordAt(cursor, 1))
  cursor.at += numeral?.count ?? 0
  return numeral?.value
}

/** Reads a time of the day; a bare number is a time only behind words such as `at` and `from`. */
export function readTime(
  cursor: Cursor,
  { isBareAllowed }: { isBareAllowed: boolean },
): ClockTime | undefined {
  const token = cursor.tokens[cursor.at]
  if (token?.kind === 'clock') {
    cursor.at++
    return { minute: token.minute, form: token.form }
  }
  const named = clockWords.get(wordAt(cursor))
  if (named !== undefined) {
    cursor.at++
    return { minute: named, form: 'named' }
  }
  return attempt(cursor, () => {
    const hour = readNumber(cursor)
    if (hour === undefined || hour > 23) return undefined
    const hasHour = take(cursor, "o'clock")
    const meridiem = ['am', 'pm'].indexOf(wordAt(cursor))
    if (meridiem >= 0 && hour <= 12) {
      cursor.at++
      return { minute: ((hour % 12) + meridiem * 12) * 60, form: 'meridiem' }
    }
    const isOther = monthOf(wordAt(cursor)) !== undefined || unitOf(wordAt(cursor)) !== undefined
    return (hasHour || isBareAllowed) && !isOther ? { minute: hour * 60, form: 'plain' } : undefined
  })
}
