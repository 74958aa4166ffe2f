/** What it costs to read a text: characters and words that are looked at, counted, whatever the machine does meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNames } from './asset-and-chain-names.ts'
import { clausesOf } from './clauses.ts'
import { nicknames } from './english/word-lists.ts'
import { lex, lexemesOf, textLengthMax } from './lex.ts'
import { score } from './score-intents.ts'
import { type Token, tag } from './tag.ts'
import { createVocabulary } from './vocabulary.ts'

const token = { chainId: '8453', address: '0x0000000000000000000000000000000000000001', decimals: 18 }
const assetOf = (symbol: string, name: string) => ({ symbol, name, tokens: [token], perp: true, spot: true })
const names = createNames(
  {
    chains: [
      { id: '8453', name: 'base', displayName: 'Base', family: 'evm' },
      { id: '7565164', name: 'solana', displayName: 'Solana', family: 'solana' },
    ],
    assets: [assetOf('ETH', 'Ether'), assetOf('SOL', 'Solana'), assetOf('LINK', 'Chainlink')],
  },
  nicknames,
)
const vocabulary = createVocabulary(names)
const repeated = (piece: string, length: number) =>
  piece.repeat(Math.ceil(length / piece.length)).slice(0, length)

/** How many characters of the text are looked at, searched or taken out. */
function charactersRead(text: string): number {
  let read = 0
  const reading: Record<string, unknown> = {
    length: text.length,
    slice(from: number, to?: number) {
      const part = text.slice(from, to)
      read += part.length
      return part
    },
    indexOf(sought: string, from: number) {
      const at = text.indexOf(sought, from)
      read += (at < 0 ? text.length : at) - from
      return at
    },
    toUpperCase() {
      read += text.length
      return text.toUpperCase()
    },
  }
  const counted = new Proxy(reading, {
    get(_, name) {
      assert.ok(typeof name === 'string')
      if (Object.hasOwn(reading, name)) return reading[name]
      assert.match(name, /^-?\d+$/, `the lexer reads by ${name}, which is not counted`)
      read++
      return text[Number(name)]
    },
  })
  lexemesOf(counted as never)
  return read
}

test('the lexer reads each character a bounded number of times, whatever is written', () => {
  for (const piece of [
    '1e',
    '1x',
    'a-',
    "a'",
    "'a ",
    '"',
    "'",
    '0x',
    '1,',
    '$-1',
    'z',
    '1.2e3f',
    '٣a',
    '-',
  ]) {
    for (const length of [500, 1_000, textLengthMax]) {
      const read = charactersRead(repeated(piece, length))
      assert.ok(read <= 100 * length, `${piece} of ${length} characters: ${read} are read`)
    }
  }
})

/** How often a word is looked at, by all that reads the words of a text. */
function wordsRead(text: string): { words: number; read: number } {
  let read = 0
  const tokens = tag(lex(text).lexemes, vocabulary).map(
    (each): Token =>
      new Proxy(each, {
        get(target, name: keyof Token) {
          if (name === 'concepts') read++
          return target[name]
        },
      }),
  )
  for (const clause of clausesOf(tokens)) score(clause, { names, nowMs: 0 })
  return { words: tokens.length, read }
}

test('the grammar looks at each word as often in a long text as in a short one', () => {
  for (const piece of [
    'link ',
    'using plus ',
    'ETH, ',
    'on sol and ',
    'and buy ',
    'buy eth and ',
    'if ',
    'then second ',
    'below and ',
    'my ',
    'stop at 1 ',
    'eth. ',
    'link near base ',
  ]) {
    const [short, long] = [60, 240].map((count) =>
      wordsRead(piece.repeat(count / piece.trim().split(' ').length)),
    )
    const [before, now] = [short!.read / short!.words, long!.read / long!.words]
    assert.ok(now <= before * 1.25, `${piece}: ${before} readings a word, then ${now}`)
  }
})
