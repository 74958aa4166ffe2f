import { isDecimal } from '#kernel/money/money.ts'
import type { Names } from './asset-and-chain-names.ts'
import { type Lexeme, lexemesOf, normalise } from './lex.ts'
import { readWords, withUnit } from './number-words.ts'
import type { Quantity } from './quantity.ts'

/** A cursor over the words of a sentence. Each reader takes what it reads, or nothing. */
export type Cursor = {
  lexemes: readonly Lexeme[]
  names: Names
  at: number
  /** The furthest position that any reader has come to: what follows it was not understood. */
  furthest: number
}

export const cursorOf = (text: string, names: Names): Cursor => ({
  lexemes: lexemesOf(normalise(text)).lexemes,
  names,
  at: 0,
  furthest: 0,
})

const wordAt = ({ lexemes }: Cursor, at: number): string => {
  const lexeme = lexemes[at]
  return lexeme?.kind === 'word' || lexeme?.kind === 'mark' ? lexeme.word : ''
}

function moveTo(cursor: Cursor, at: number): true {
  cursor.at = at
  cursor.furthest = Math.max(cursor.furthest, at)
  return true
}

/** Takes the first of some phrases that stands here. */
export function takePhrase(cursor: Cursor, phrases: readonly string[]): string | undefined {
  return phrases.find((phrase) => {
    const words = phrase.split(' ')
    return (
      words.every((word, n) => wordAt(cursor, cursor.at + n) === word) &&
      moveTo(cursor, cursor.at + words.length)
    )
  })
}

export const isNext = (cursor: Cursor, phrases: readonly string[]): boolean => {
  const { at, furthest } = cursor
  const found = takePhrase(cursor, phrases) !== undefined
  Object.assign(cursor, { at, furthest })
  return found
}

/** Takes words that change nothing, such as articles. */
export function skip(cursor: Cursor, phrases: readonly string[]): void {
  while (takePhrase(cursor, phrases) !== undefined);
}

export const fillers: readonly string[] = ['the', 'a', 'an', 'me', 'my', 'please', 'some', 'worth', ',']

/** Whether nothing but the end of a sentence is left. */
export function isAtEnd(cursor: Cursor): boolean {
  skip(cursor, [',', '.', '!', ';', 'please'])
  return cursor.at >= cursor.lexemes.length
}

function quantityHere(cursor: Cursor): { quantity: Quantity; end: number } | undefined {
  const { lexemes, at } = cursor
  const lexeme = lexemes[at]
  const read =
    lexeme?.kind === 'quantity' && lexeme.quantity
      ? { quantity: lexeme.quantity, count: 1 }
      : readWords(lexemes, at)
  if (!read) return undefined
  const end = at + read.count
  const { quantity, count } = withUnit(read.quantity, lexemes.slice(end, end + 2))
  return { quantity, end: end + count }
}

/** Takes a positive number in one of some units, and returns its decimal text. */
export function takeQuantity(cursor: Cursor, units: readonly Quantity['unit'][]): string | undefined {
  const read = quantityHere(cursor)
  if (!read) return undefined
  const { quantity, end } = read
  const isPositive = isDecimal(quantity.value) && !/^-|^0*(?:\.0*)?$/.test(quantity.value)
  if (!isPositive || !units.includes(quantity.unit)) return undefined
  moveTo(cursor, end)
  return quantity.value
}

/** Takes an amount of dollars. USDC are dollars here, and a bare number is none. */
export function takeDollars(cursor: Cursor): string | undefined {
  const usd = takeQuantity(cursor, ['usd'])
  if (usd !== undefined) return usd
  const { at } = cursor
  const value = takeQuantity(cursor, ['number'])
  if (value !== undefined && takePhrase(cursor, ['usdc', 'usd'])) return value
  cursor.at = at
  return undefined
}

const assetWordsMax = 3

/** Takes the name of an asset with a perpetual market, and returns its symbol. */
export function takePerp(cursor: Cursor): string | undefined {
  const { names, at } = cursor
  for (let count = assetWordsMax; count > 0; count--) {
    const words = Array.from({ length: count }, (_, n) => wordAt(cursor, at + n))
    const asset = words.includes('') ? undefined : names.phrases.get(words.join(' '))?.asset
    if (!asset?.perp) continue
    moveTo(cursor, at + count)
    return asset.symbol
  }
  return undefined
}

/** Takes the length of candles, such as `15m` or `4 hour`. */
export function takeSpan(cursor: Cursor): string | undefined {
  const read = quantityHere(cursor)
  const { span, value } = read?.quantity ?? {}
  if (!read || span === undefined) return undefined
  moveTo(cursor, read.end)
  return `${value}${span}`
}

/** Returns the words that no reader has understood. */
export const unreadOf = ({ lexemes, furthest }: Cursor): string[] => {
  const text = lexemes
    .slice(furthest)
    .map((each) => each.text)
    .join(' ')
    .trim()
  return text === '' ? [] : [text.slice(0, 200)]
}
