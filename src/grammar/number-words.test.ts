import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lex } from './lex.ts'
import { readWords, withUnit } from './number-words.ts'
import { quantityText } from './quantity.ts'

const read = (text: string): string => {
  const { lexemes } = lex(text)
  const words = readWords(lexemes, 0)
  if (!words) return 'none'
  const { quantity } = withUnit(words.quantity, lexemes.slice(words.count))
  return `${quantity.unit} ${quantityText(quantity)}`
}

test('numbers in words become the number', () => {
  const said: Record<string, string> = {
    'a hundred bucks': 'usd 100 usd',
    'two hundred dollars': 'usd 200 usd',
    'one hundred and fifty': 'number 150',
    'twenty five percent': 'percent 25%',
    'a thousand': 'number 1000',
    'two thousand five hundred': 'number 2500',
    'five grand': 'usd 5000 usd',
    'half a million dollars': 'usd 500000 usd',
    'ten times leverage': 'times 10x',
    'three days': 'span 3d',
    half: 'share 1/2',
    'a third': 'share 1/3',
    'two thirds': 'share 2/3',
    'three quarters': 'share 3/4',
    seven: 'number 7',
  }
  for (const [text, expected] of Object.entries(said)) assert.equal(read(text), expected, text)
})

test('words that are no number stay words', () => {
  for (const text of ['a token', 'hundred', 'and', 'ONE', 'million']) assert.equal(read(text), 'none', text)
})
