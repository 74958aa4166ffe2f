import * as english from './english/number-and-unit-words.ts'
import type { Lexeme } from './lex.ts'
import { type Quantity, shifted } from './quantity.ts'

/** Reads numbers in words: `a hundred`, `twenty five`, `two thirds`, `half`, and the units behind a number. */

/** A quantity that was read, and how many lexemes it takes. */
export type ReadWords = { quantity: Quantity; count: number }

const zerosOf = (word: string | undefined): number | undefined => {
  const zeros = english.scales.get(word ?? '') ?? english.shortScales.get(word ?? '')
  return zeros === undefined ? undefined : Number(zeros)
}
const isDollar = (lexeme: Lexeme | undefined): boolean =>
  lexeme?.kind === 'word' && english.unitWords.get(lexeme.word) === 'usd'

/** Reads a whole number below ten million from words, such as `two`, `twenty five` or `a hundred and fifty`. */
function cardinal(words: readonly string[]): { value: string; count: number; isGrand: boolean } | undefined {
  let total = 0
  let part = 0
  let count = 0
  let isGrand = false
  for (const [at, word] of words.entries()) {
    const digit = english.numerals.get(word)
    const zeros = english.scales.get(word)
    if (digit !== undefined) {
      const fits =
        part === 0 || (part % 10 === 0 && part % 100 !== 0 && digit < 10) || (part >= 100 && part % 100 === 0)
      if (!fits) break
      part += digit
      count = at + 1
    } else if (zeros !== undefined && (part > 0 || (at > 0 && count === 0))) {
      const scale = 10 ** Number(zeros)
      part = (part === 0 ? 1 : part) * scale
      if (scale > 100) {
        total += part
        part = 0
      }
      isGrand ||= word === english.dollarScale
      count = at + 1
    } else if (english.articles.has(word) && at === 0 && english.scales.has(words[1] ?? '')) continue
    else if (
      word === english.numberJoint &&
      count > 0 &&
      (part >= 100 || total > 0) &&
      english.numerals.has(words[at + 1] ?? '')
    )
      continue
    else break
    if (at > 7) break
  }
  return count === 0 ? undefined : { value: String(total + part), count, isGrand }
}

const isHalf = (word: string): boolean => english.fractions.get(word) === '2'
const share = (value: string, count: number): ReadWords => ({ quantity: { unit: 'share', value }, count })

/** Reads a fraction in words, such as `half`, `half a million`, `a third` or `two thirds`. */
const fractionWords = ([first = '', second = '', third]: readonly string[]): ReadWords | undefined => {
  if (isHalf(first)) {
    const zeros = english.articles.has(second) ? zerosOf(third) : undefined
    if (zeros === undefined) return share('1/2', 1)
    return { quantity: { unit: 'number', value: shifted('0.5', zeros) ?? '0' }, count: 3 }
  }
  const under = english.fractions.get(second)
  const over = english.articles.has(first) ? 1 : english.numerals.get(first)
  if (under === undefined || over === undefined || over > 9) return undefined
  return isHalf(second) && over > 1 ? undefined : share(`${over}/${under}`, 2)
}

/** Reads a quantity in words that begins at a lexeme. */
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

/** Adds the unit in the words behind a number: `40 bucks`, `15 percent`, `10 times leverage`, `3 days`. */
export function withUnit(quantity: Quantity, [first, second]: readonly Lexeme[]): ReadWords {
  const word = first?.kind === 'word' && !first.isSymbol ? first.word : ''
  const isMillions = quantity.unit === 'span' && quantity.isUnclear === true
  if (isMillions && english.unitWords.get(word) === 'usd')
    return { quantity: { unit: 'usd', value: shifted(quantity.value, 6) ?? '0' }, count: 1 }
  if (quantity.unit !== 'number') return { quantity, count: 0 }
  const zeros = zerosOf(word)
  const scaled = zeros === undefined ? undefined : shifted(quantity.value, zeros)
  if (scaled !== undefined) {
    const isGrand = word === english.dollarScale
    const unit = isGrand || isDollar(second) ? 'usd' : 'number'
    return { quantity: { unit, value: scaled }, count: unit === 'usd' && !isGrand ? 2 : 1 }
  }
  const pair = english.unitWords.get(`${word} ${second?.word}`)
  const unit = pair ?? english.unitWords.get(word)
  if (unit) return { quantity: { ...quantity, unit }, count: pair ? 2 : 1 }
  const span = english.spanWords.get(word)
  return span ? { quantity: { unit: 'span', value: quantity.value, span }, count: 1 } : { quantity, count: 0 }
}
