import type { Lexeme } from './lex.ts'
import { type Quantity, shifted } from './quantity.ts'

/** Numbers in words: `a hundred`, `twenty five`, `two thirds`, `half`, and the units behind a number. */

const small: Readonly<Record<string, number>> = {
  one: 1,
  two: 2,
  three: 3,
  four: 4,
  five: 5,
  six: 6,
  seven: 7,
  eight: 8,
  nine: 9,
  ten: 10,
  eleven: 11,
  twelve: 12,
  thirteen: 13,
  fourteen: 14,
  fifteen: 15,
  sixteen: 16,
  seventeen: 17,
  eighteen: 18,
  nineteen: 19,
  twenty: 20,
  thirty: 30,
  forty: 40,
  fifty: 50,
  sixty: 60,
  seventy: 70,
  eighty: 80,
  ninety: 90,
}
const scaleWords: Readonly<Record<string, number>> = {
  hundred: 2,
  thousand: 3,
  grand: 3,
  million: 6,
  k: 3,
  mil: 6,
}
const fractions: Readonly<Record<string, string>> = {
  half: '2',
  third: '3',
  thirds: '3',
  quarter: '4',
  quarters: '4',
  fifth: '5',
  fifths: '5',
  tenth: '10',
}
const usdWords = new Set('dollar dollars buck bucks usd grand'.split(' '))
const percentWords = new Set('percent pct percentage'.split(' '))
const spanWords: Readonly<Record<string, Quantity['span'] & string>> = {
  minute: 'm',
  minutes: 'm',
  min: 'm',
  mins: 'm',
  hour: 'h',
  hours: 'h',
  hr: 'h',
  hrs: 'h',
  hourly: 'h',
  day: 'd',
  days: 'd',
  week: 'w',
  weeks: 'w',
  month: 'mo',
  months: 'mo',
  year: 'y',
  years: 'y',
}

/** A quantity and how many lexemes it takes. */
export type ReadWords = { quantity: Quantity; count: number }

/** What is left of the number: `two`, `twenty five`, `a hundred and fifty`, in whole numbers below ten million. */
function cardinal(words: readonly string[]): { value: string; count: number; isGrand: boolean } | undefined {
  let total = 0
  let part = 0
  let count = 0
  let isGrand = false
  for (const [at, word] of words.entries()) {
    const digit = small[word]
    if (digit !== undefined) {
      const fits =
        part === 0 || (part % 10 === 0 && part % 100 !== 0 && digit < 10) || (part >= 100 && part % 100 === 0)
      if (!fits) break
      part += digit
      count = at + 1
    } else if (word in scaleWords && (part > 0 || (at > 0 && count === 0))) {
      if (word === 'k' || word === 'mil') break
      const scale = 10 ** (scaleWords[word] ?? 0)
      part = (part === 0 ? 1 : part) * scale
      if (scale > 100) {
        total += part
        part = 0
      }
      isGrand ||= word === 'grand'
      count = at + 1
    } else if ((word === 'a' || word === 'an') && at === 0 && (words[1] ?? '') in scaleWords) continue
    else if (
      word === 'and' &&
      count > 0 &&
      (part >= 100 || total > 0) &&
      small[words[at + 1] ?? ''] !== undefined
    )
      continue
    else break
    if (at > 7) break
  }
  return count === 0 ? undefined : { value: String(total + part), count, isGrand }
}

const fractionWords = (words: readonly string[]): ReadWords | undefined => {
  const [first = '', second = ''] = words
  if (first === 'half') {
    const skipped = second === 'a' || second === 'an' ? 2 : 0
    if (skipped > 0 && (words[2] ?? '') in scaleWords)
      return {
        quantity: { unit: 'number', value: shifted('0.5', scaleWords[words[2] ?? ''] ?? 0) ?? '0' },
        count: 3,
      }
    return { quantity: { unit: 'share', value: '1/2' }, count: 1 }
  }
  const under = fractions[second]
  const over = first === 'a' || first === 'an' || first === 'one' ? 1 : small[first]
  if (under === undefined || over === undefined || over > 9 || second === 'half') {
    return over === 1 && second === 'half'
      ? { quantity: { unit: 'share', value: '1/2' }, count: 2 }
      : undefined
  }
  return { quantity: { unit: 'share', value: `${over}/${under}` }, count: 2 }
}

/** A quantity in words that begins at this lexeme. */
export function readWords(lexemes: readonly Lexeme[], at: number): ReadWords | undefined {
  const first = lexemes[at]
  if (first?.kind !== 'word' || first.isSymbol) return undefined
  const words: string[] = []
  for (let next = at; next < at + 9; next++) {
    const lexeme = lexemes[next]
    if (lexeme?.kind !== 'word') break
    words.push(lexeme.word)
  }
  const fraction = fractionWords(words)
  if (fraction) return fraction
  const read = cardinal(words)
  if (!read) return undefined
  return { quantity: { unit: read.isGrand ? 'usd' : 'number', value: read.value }, count: read.count }
}

/** The unit in the words behind a number: `40 bucks`, `15 percent`, `10 times leverage`, `3 days`. */
export function withUnit(quantity: Quantity, following: readonly Lexeme[]): ReadWords {
  const [first, second, third] = following
  const word = first?.kind === 'word' && !first.isSymbol ? first.word : ''
  const isPlain = quantity.unit === 'number'
  const isMillions = quantity.unit === 'span' && quantity.isUnclear === true
  if (isMillions && usdWords.has(word))
    return { quantity: { unit: 'usd', value: shifted(quantity.value, 6) ?? '0' }, count: 1 }
  if (!isPlain) return { quantity, count: 0 }
  if (word in scaleWords) {
    const value = shifted(quantity.value, scaleWords[word] ?? 0)
    if (value !== undefined) {
      const isUsd = word === 'grand' || (second?.kind === 'word' && usdWords.has(second.word))
      const count = isUsd && word !== 'grand' ? 2 : 1
      return { quantity: { unit: isUsd ? 'usd' : 'number', value }, count }
    }
  }
  if (usdWords.has(word)) return { quantity: { ...quantity, unit: 'usd' }, count: 1 }
  if (percentWords.has(word)) return { quantity: { ...quantity, unit: 'percent' }, count: 1 }
  if (word === 'per' && second?.word === 'cent')
    return { quantity: { ...quantity, unit: 'percent' }, count: 2 }
  if (word === 'basis' && second?.word === 'points')
    return { quantity: { ...quantity, unit: 'bps' }, count: 2 }
  if (word === 'bps' || word === 'bp') return { quantity: { ...quantity, unit: 'bps' }, count: 1 }
  if (word === 'x') return { quantity: { ...quantity, unit: 'times' }, count: 1 }
  if (word === 'times')
    return { quantity: { ...quantity, unit: 'times' }, count: second?.word === 'leverage' ? 2 : 1 }
  const span = spanWords[word]
  if (span) return { quantity: { unit: 'span', value: quantity.value, span }, count: 1 }
  if (first?.kind === 'mark' && first.word === '/' && second?.kind === 'quantity' && third === undefined)
    return { quantity, count: 0 }
  return { quantity, count: 0 }
}
