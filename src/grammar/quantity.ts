import { canonicalDecimal } from '#kernel/money/money.ts'
import * as english from './english/number-and-unit-words.ts'

/** Reads quantities as people write them, as exact decimal text; no value passes through a float. */
export type QuantityUnit =
  | 'usd'
  | 'number'
  | 'percent'
  | 'bps'
  | 'times'
  | 'share'
  | 'span'
  | 'date'
  | 'clock'
  | 'id'
export type SpanUnit = 'm' | 'h' | 'd' | 'w' | 'mo' | 'y'
export type Quantity = {
  unit: QuantityUnit
  /** The value as decimal text; a share is `1/3`, a date `2026-12-24`, a clock time `09:30`. */
  value: string
  span?: SpanUnit
  /** True for `5m`, which means five minutes beside a chart, and is unclear elsewhere. */
  isUnclear?: true
}

/** Multiplies decimal text by a power of ten, by moving the point in the text. */
export function shifted(value: string, places: number): string | undefined {
  if (places === 0) return canonicalDecimal(value)
  const [whole = '', fraction = ''] = value.split('.')
  const digits = fraction.padEnd(places, '0')
  return canonicalDecimal(`${whole}${digits.slice(0, places)}.${digits.slice(places)}0`)
}

const digitsMax = 39
const isDigit = (char: string | undefined): boolean => char !== undefined && char >= '0' && char <= '9'
const isLetter = (char: string | undefined): boolean => char !== undefined && /^\p{L}$/u.test(char)

/** Returns where a run of characters ends, or where it is cut after `lengthMax`. */
export function runEnd(
  text: string,
  from: number,
  holds: (char: string | undefined) => boolean,
  lengthMax = text.length,
): number {
  let at = from
  while (at < text.length && at - from < lengthMax && holds(text[at])) at++
  return at
}

/** `1,000.5` is read with its groups; `1.000,5` is not read at all, since it may mean a thousand or one. */
function readDigits(text: string, from: number): { value: string; end: number; isBroken: boolean } {
  const end = runEnd(text, from, (char) => isDigit(char) || char === ',' || char === '.')
  let stop = end
  while (stop > from && (text[stop - 1] === ',' || text[stop - 1] === '.')) stop--
  const source = text.slice(from, stop)
  const grouped = /^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/.test(source)
  const plainForm = /^(?:\d+(?:\.\d+)?|\.\d+)$/.test(source)
  const digits = source.replaceAll(',', '')
  const isBroken = !(grouped || plainForm) || digits.length > digitsMax
  return { value: digits.startsWith('.') ? `0${digits}` : digits, end: stop, isBroken }
}

export type ReadQuantity = { quantity: Quantity; end: number } | { unclear: true; end: number }

const monthDay = /^(\d{4})-(\d{2})-(\d{2})(?![\d-])/

/** Reads dates and clock times, which would otherwise be read as numbers. */
function readMoment(text: string, from: number): ReadQuantity | undefined {
  const part = text.slice(from, from + 12)
  const date = monthDay.exec(part)
  if (date) return { quantity: { unit: 'date', value: date[0] }, end: from + date[0].length }
  const clock = english.clockTime.exec(part)
  if (!clock) return undefined
  const [whole, hours, minutes = '00', half, plainHours, plainMinutes] = clock
  if (plainHours !== undefined)
    return {
      quantity: { unit: 'clock', value: `${plainHours.padStart(2, '0')}:${plainMinutes}` },
      end: from + whole.length,
    }
  const hour = (Number(hours) % 12) + (english.isAfternoon(half) ? 12 : 0)
  if (Number(hours) > 12 || Number(minutes) > 59) return undefined
  return {
    quantity: { unit: 'clock', value: `${String(hour).padStart(2, '0')}:${minutes}` },
    end: from + whole.length,
  }
}

type Meaning = { form: Omit<Quantity, 'value'>; places: number }

/** Returns the unit that letters right behind a number mean, and by how many places they scale the number. */
function meaningOf(suffix: string, { isDollar }: { isDollar: boolean }): Meaning | undefined {
  const word = suffix.toLowerCase()
  const unit = isDollar ? undefined : english.unitSuffixes.get(word)
  if (unit) return { form: { unit }, places: 0 }
  const span = isDollar ? undefined : english.spanSuffixes.get(word)
  const isUnclear = word === english.unclearSuffix
  if (span) return { form: { unit: 'span', span, ...(isUnclear && { isUnclear }) }, places: 0 }
  const scale = word === '' ? '0' : english.scaleSuffixes.get(word)
  return scale === undefined
    ? undefined
    : { form: { unit: isDollar ? 'usd' : 'number' }, places: Number(scale) }
}

/**
 * Reads a number that begins at `from`, with its sign, currency and suffix; undefined if no number begins there.
 */
export function readQuantity(text: string, from: number): ReadQuantity | undefined {
  let at = from
  let isDollar = false
  let sign = ''
  for (let part = 0; part < 2; part++) {
    if (!isDollar && text[at] === '$') isDollar = true
    else if (sign === '' && (text[at] === '-' || text[at] === '+') && !isDigit(text[from - 1]))
      sign = text[at] ?? ''
    else break
    at++
    if (text[at] === ' ' && isDigit(text[at + 1])) at++
  }
  if (!isDigit(text[at]) && !(text[at] === '.' && isDigit(text[at + 1]))) return undefined
  if (!isDollar && sign === '') {
    const moment = readMoment(text, at)
    if (moment) return moment
  }
  const { value: digits, end, isBroken } = readDigits(text, at)
  const lettersEnd = runEnd(text, end, isLetter)
  const suffix = text.slice(end, lettersEnd)
  if (isBroken || isDigit(text[lettersEnd]))
    return { unclear: true, end: Math.max(lettersEnd, end, from + 1) }
  const meaning = meaningOf(suffix, { isDollar })
  const value = shifted(sign === '-' ? `-${digits}` : digits, meaning?.places ?? 0)
  if (value === undefined) return { unclear: true, end: lettersEnd }
  if (suffix === '' && text[end] === '%') return { quantity: { unit: 'percent', value }, end: end + 1 }
  if (suffix === '' && text[end] === '/' && !isDollar) {
    const share = /^([1-9])\/([1-9]\d?)(?![\d/.])/.exec(text.slice(at, at + 5))
    if (share) return { quantity: { unit: 'share', value: share[0] }, end: at + share[0].length }
  }
  if (suffix === '' && text[end] === '$' && !isDollar)
    return { quantity: { unit: 'usd', value }, end: end + 1 }
  if (!meaning) return isDollar ? { unclear: true, end: lettersEnd } : undefined
  const isIdentifier =
    suffix === '' && sign === '' && !isDollar && digits.length >= 8 && !digits.includes('.')
  const quantity: Quantity = isIdentifier ? { unit: 'id', value: digits } : { ...meaning.form, value }
  return { quantity, end: lettersEnd }
}

/** Writes a quantity in the form that slots and documents use. */
export function quantityText({ unit, value, span }: Quantity): string {
  if (unit === 'usd') return `${value} usd`
  if (unit === 'percent') return `${value}%`
  if (unit === 'bps') return `${value} bps`
  if (unit === 'times') return `${value}x`
  if (unit === 'span') return `${value}${span ?? ''}`
  return value
}
