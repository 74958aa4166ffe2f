import type { Asset, NamedChain } from './asset-and-chain-names.ts'
import { withoutPossessive } from './english/word-lists.ts'
import type { Concept } from './feature-rules.ts'
import type { Lexeme } from './lex.ts'
import { readWords, withUnit } from './number-words.ts'
import type { Quantity } from './quantity.ts'
import type { Phrase, Vocabulary } from './vocabulary.ts'

/** A token is a lexeme, or a phrase of several lexemes, with what it may mean. */
export type Token = {
  kind: Lexeme['kind']
  text: string
  /** The words of the token in lower case. */
  words: string
  concepts: readonly Concept[]
  asset?: Asset
  chain?: NamedChain
  quantity?: Quantity
  /** True if the token's symbol is an English word too, and nothing says that it is meant as a symbol. */
  isCommon?: true
  /** True if a word that may be an order names something here: `short` in `my sol short`. */
  isNoun?: true
  /** True if a typing error in the token was corrected. */
  isGuess?: true
}

/** At most this many misspelt words of a text are looked up, so that a text of nothing but errors stays cheap. */
const correctionsMax = 32

const markConcepts: ReadonlyMap<string, Concept> = new Map([
  ['@', 'AT'],
  ['<', 'BELOW'],
  ['>', 'ABOVE'],
])

type Tagging = { lexemes: readonly Lexeme[]; vocabulary: Vocabulary; corrections: { left: number } }

/** Returns a word as the vocabulary knows it, or its correction. */
function known({ vocabulary, corrections }: Tagging, lexeme: Lexeme): { word: string; isGuess: boolean } {
  const { word } = lexeme
  if (vocabulary.isKnown(word)) return { word, isGuess: false }
  const bare = withoutPossessive(word)
  if (vocabulary.isKnown(bare)) return { word: bare, isGuess: false }
  if (lexeme.isSymbol || corrections.left <= 0) return { word, isGuess: false }
  corrections.left--
  const corrected = vocabulary.corrected(bare)
  return corrected === undefined ? { word, isGuess: false } : { word: corrected, isGuess: true }
}

type Found = { phrase: Phrase; isGuess: boolean }

/** Returns the longest known phrase that begins at a position. */
function findPhrase(
  tagging: Tagging,
  at: number,
  read: (at: number) => { word: string; isGuess: boolean } | undefined,
): Found | undefined {
  const first = read(at)
  if (!first) return undefined
  const bare = withoutPossessive(first.word)
  const candidates = [
    ...(tagging.vocabulary.byFirstWord.get(first.word) ?? []),
    ...(bare === first.word ? [] : (tagging.vocabulary.byFirstWord.get(bare) ?? [])),
  ]
  for (const phrase of candidates) {
    let isGuess = first.isGuess
    const isMatch = phrase.words.every((word, offset) => {
      if (offset === 0) return word === first.word || word === bare
      const next = read(at + offset)
      isGuess ||= next?.isGuess ?? false
      return next?.word === word
    })
    if (isMatch) return { phrase, isGuess }
  }
  return undefined
}

const spoken = (lexemes: readonly Lexeme[], from: number, end: number): string =>
  lexemes
    .slice(from, end)
    .map(({ text }) => text)
    .join(' ')

function wordToken(lexemes: readonly Lexeme[], at: number, found: Found | undefined): Token {
  const lexeme = lexemes[at]
  const token: Token = {
    kind: 'word',
    text: spoken(lexemes, at, at + (found?.phrase.words.length ?? 1)),
    words: found ? found.phrase.words.join(' ') : (lexeme?.word ?? ''),
    concepts: found?.phrase.concepts ?? [],
  }
  if (found?.isGuess) token.isGuess = true
  const named = found?.phrase.named
  if (!named || found.isGuess) return token
  if (named.asset) token.asset = named.asset
  if (named.chain) token.chain = named.chain
  if (found.phrase.isCommon && !lexeme?.isSymbol) token.isCommon = true
  // A word that is written as a symbol is an asset, whatever else the word means.
  if (lexeme?.isSymbol && found.phrase.isCommon && named.asset) token.concepts = []
  return token
}

/**
 * Makes tokens of lexemes: every quantity becomes one token with its unit, every phrase one token with its
 * concepts.
 */
export function tag(lexemes: readonly Lexeme[], vocabulary: Vocabulary): Token[] {
  const tagging: Tagging = { lexemes, vocabulary, corrections: { left: correctionsMax } }
  const readings = new Map<number, { word: string; isGuess: boolean } | undefined>()
  const read = (at: number) => {
    if (readings.has(at)) return readings.get(at)
    const lexeme = lexemes[at]
    const reading = lexeme?.kind === 'word' ? known(tagging, lexeme) : undefined
    readings.set(at, reading)
    return reading
  }
  const tokens: Token[] = []
  let at = 0
  while (at < lexemes.length) {
    const lexeme = lexemes[at]
    if (!lexeme) break
    const found = lexeme.kind === 'word' ? findPhrase(tagging, at, read) : undefined
    const words =
      lexeme.kind === 'quantity' && lexeme.quantity
        ? { quantity: lexeme.quantity, count: 1 }
        : readWords(lexemes, at)
    if (words && words.count >= (found?.phrase.words.length ?? 0)) {
      const { quantity, count } = withUnit(
        words.quantity,
        lexemes.slice(at + words.count, at + words.count + 3),
      )
      const end = at + words.count + count
      tokens.push({ kind: 'quantity', text: spoken(lexemes, at, end), words: '', concepts: [], quantity })
      at = end
    } else if (lexeme.kind === 'word') {
      tokens.push(wordToken(lexemes, at, found))
      at += found?.phrase.words.length ?? 1
    } else {
      const { kind, text, word } = lexeme
      const concept = markConcepts.get(word)
      tokens.push({ kind, text, words: word, concepts: concept ? [concept] : [] })
      at++
    }
  }
  return tokens
}

const articles = ['the', 'this', 'that']

/**
 * Marks the sides of positions that are there already: in `my sol short` and `the eth long` the last word names a
 * position, and orders nothing.
 */
export function withNouns(tokens: readonly Token[]): Token[] {
  return tokens.map((token, at) => {
    if (!has(token, 'LONG', 'SHORT')) return token
    const before = tokens[at - 1]
    const earlier = before?.asset === undefined ? before : tokens[at - 2]
    const isOwned = has(earlier, 'MINE') || articles.includes(earlier?.words ?? '')
    return isOwned ? { ...token, isNoun: true } : token
  })
}

export const has = (token: Token | undefined, ...concepts: readonly Concept[]): boolean =>
  token !== undefined && concepts.some((concept) => token.concepts.includes(concept))
