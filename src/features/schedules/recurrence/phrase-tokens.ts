import { readQuantity } from '#grammar/quantity.ts'
import { minuteOf } from './calendar-to-timetable.ts'
import type { Unit } from './english-words.ts'

/** A piece of a phrase. Every character of the phrase belongs to a token, so that none is ignored. */
export type Token = { text: string; word: string } & (
  | { kind: 'word' | 'mark' | 'zone' | 'offset' }
  | { kind: 'number' | 'ordinal'; value: number }
  | { kind: 'span'; value: number; unit: Unit }
  /** A time of the day; `minute` counts from midnight. */
  | { kind: 'clock'; minute: number; form: 'meridiem' | 'plain' }
  /** A `date` is a local day, a `moment` a local time, and an `instant` a time in UTC. */
  | { kind: 'date' | 'moment' | 'instant'; ms: number }
)

const dateForm =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)\s?(Z|UTC|[+-]\d{2}:\d{2})?)?(?![\w:-])/i
const offsetForm = /^(?:(?:utc|gmt)\s?)?[+-]\d{1,2}(?::?\d{2})?(?![\w:-])/i
const ordinalForm = /^(\d{1,2})(?:st|nd|rd|th)(?!\w)/i
const zoneForm = /^[a-z_]+(?:\/[a-z0-9_+-]+)+/i
const wordForm = /^\p{L}+(?:'\p{L}+)*/u

/**
 * Reads a date, with its time if the text has one. A date that does not exist becomes a token of the kind `mark`, which
 * no clause understands.
 */
function readDate(text: string): Token | undefined {
  const found = dateForm.exec(text)
  if (!found) return undefined
  const [whole, day = '', time, zone] = found
  const dayStart = Date.parse(`${day}T00:00:00Z`)
  const isReal = new Date(dayStart || 0).toISOString().startsWith(day)
  const offset = zone === undefined || /^utc$/i.test(zone) ? 'Z' : zone.toUpperCase()
  const ms = time === undefined ? dayStart : Date.parse(`${day}T${time}${offset}`)
  const own = { text: whole, word: '' }
  if (!isReal || Number.isNaN(ms)) return { ...own, kind: 'mark' }
  return { ...own, kind: time === undefined ? 'date' : zone === undefined ? 'moment' : 'instant', ms }
}

function readNumber(text: string): Token | undefined {
  const ordinal = ordinalForm.exec(text)
  if (ordinal) return { kind: 'ordinal', text: ordinal[0], word: '', value: Number(ordinal[1]) }
  const read = readQuantity(text, 0)
  if (!read) return undefined
  const own = { text: text.slice(0, read.end), word: '' }
  if (!('quantity' in read)) return { ...own, kind: 'mark' }
  const { unit, value, span } = read.quantity
  if (unit === 'clock')
    return {
      ...own,
      kind: 'clock',
      minute: minuteOf(value),
      form: /m$/i.test(own.text) ? 'meridiem' : 'plain',
    }
  if (!/^\d{1,9}$/.test(value)) return { ...own, kind: 'mark' }
  if (unit === 'number' || unit === 'id') return { ...own, kind: 'number', value: Number(value) }
  return unit === 'span' && span
    ? { ...own, kind: 'span', value: Number(value), unit: span }
    : { ...own, kind: 'mark' }
}

function readToken(text: string, before: string): Token {
  const date = readDate(text)
  if (date) return date
  const offset = /[\p{L}\p{N}]/u.test(before) ? undefined : offsetForm.exec(text)?.[0]
  if (offset !== undefined) return { kind: 'offset', text: offset, word: '' }
  const number = /^\d/.test(text) ? readNumber(text) : undefined
  if (number) return number
  const zone = zoneForm.exec(text)?.[0]
  if (zone !== undefined) return { kind: 'zone', text: zone, word: '' }
  const word = wordForm.exec(text)?.[0]
  if (word !== undefined) return { kind: 'word', text: word, word: word.toLowerCase() }
  const mark = text[0] ?? ''
  const meaning: Readonly<Record<string, string>> = { '-': 'to', '&': 'and' }
  return { kind: 'mark', text: mark, word: meaning[mark] ?? mark }
}

/** Returns the tokens of a phrase in normal spelling. */
export function tokensOf(phrase: string): Token[] {
  const text = phrase.replace(/\b([ap])\.\s?m\b\.?/gi, '$1m')
  const tokens: Token[] = []
  for (let at = 0; at < text.length; ) {
    if (/\s/.test(text[at] ?? '')) {
      at++
      continue
    }
    const token = readToken(text.slice(at), text[at - 1] ?? '')
    tokens.push(token)
    at += token.text.length
  }
  return tokens
}
