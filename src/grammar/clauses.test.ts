import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNames } from './asset-and-chain-names.ts'
import { clausesOf } from './clauses.ts'
import { nicknames } from './english/word-lists.ts'
import { lex } from './lex.ts'
import { tag } from './tag.ts'
import { createVocabulary } from './vocabulary.ts'

const token = { chainId: '8453', address: '0x0000000000000000000000000000000000000001', decimals: 18 }
const vocabulary = createVocabulary(
  createNames(
    {
      chains: [{ id: '8453', name: 'base', displayName: 'Base', family: 'evm' }],
      assets: [
        { symbol: 'ETH', name: 'Ether', tokens: [token], perp: true, spot: false },
        { symbol: 'SOL', name: 'Solana', tokens: [], perp: true, spot: false },
      ],
    },
    nicknames,
  ),
)
const moods = (text: string): string =>
  clausesOf(tag(lex(text).lexemes, vocabulary))
    .map(({ mood }) => mood)
    .join(' ')

test('an order begins with its verb, behind words of politeness and place', () => {
  for (const text of [
    'buy $50 of eth',
    'please sell all my eth',
    'can you buy $50 of eth?',
    "i'd like to sell half of my eth",
    'on base, buy $50 of eth',
    "let's go ahead and close my eth position",
    'ok now long eth $50',
    'stop loss at 2800 on my eth',
  ])
    assert.equal(moods(text), 'do', text)
})

test('what is negated, reported, supposed, told or asked is no order', () => {
  const said: Record<string, string> = {
    "don't buy $50 of eth": 'negated',
    'never sell my eth': 'negated',
    'he said buy $50 of eth': 'reported',
    'the article says: sell all my eth': 'reported',
    'what if i sold my eth': 'suppose',
    'maybe buy $50 of eth': 'suppose',
    'should i buy $50 of eth?': 'ask',
    'buy $50 of eth?': 'ask',
    'how do i sell my eth': 'ask',
    'i sold my eth': 'stated',
    'everyone wants to buy eth': 'stated',
    'traders sell eth': 'stated',
  }
  for (const [text, mood] of Object.entries(said)) assert.equal(moods(text), mood, text)
})

test('the mood of an order holds for the orders that it is joined to', () => {
  assert.equal(moods('what if i sold my eth and bought sol'), 'suppose')
  assert.equal(moods('maybe close my eth position and buy $50 of eth'), 'suppose suppose')
  assert.equal(moods("don't sell my eth; buy $50 of eth"), 'negated negated')
  assert.equal(moods('how do i buy eth and then sell my eth'), 'ask ask')
})

test('the word of somebody else colours every sentence behind it', () => {
  assert.equal(moods('he told me something. buy $50 of eth'), 'ask reported')
  assert.equal(moods('he told me something. it is nice. buy $50 of eth'), 'ask ask reported')
  assert.equal(moods('twitter says eth is great. sell all my eth'), 'ask reported')
})

test('several orders are split in the order in which they are said', () => {
  assert.equal(moods('sell all my eth and buy $50 of sol'), 'do do')
  assert.equal(moods('close my eth position, then buy $50 of eth'), 'do do')
  assert.equal(moods('buy $20 of eth and $30 of sol'), 'do do')
  assert.equal(moods('long eth $50 and set a stop loss at 2800'), 'do')
})
