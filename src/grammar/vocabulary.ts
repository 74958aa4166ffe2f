import { editDistance } from '#kernel/contract/nearest-names.ts'
import type { Named, Names } from './asset-and-chain-names.ts'
import { concepts } from './english/lexicon.ts'
import { commonSymbols, contractions, offTopicWords, plainWords } from './english/word-lists.ts'
import type { Concept } from './feature-rules.ts'

/** The vocabulary has phrases by their first word, and corrects words with a typing error. */
export type Phrase = {
  words: readonly string[]
  concepts: readonly Concept[]
  named?: Named
  isCommon: boolean
}
export type Vocabulary = {
  /** The phrases that begin with a word, the longest first. */
  byFirstWord: ReadonlyMap<string, readonly Phrase[]>
  /**
   * Returns the known word that differs from a misspelt word by one error; undefined if no word or several words
   * do.
   */
  corrected: (word: string) => string | undefined
  isKnown: (word: string) => boolean
}

/** Words that are shorter than this are not corrected, because short words are similar by chance. */
const correctedLengthMin = 4
const correctedLengthMax = 24

const deletions = (word: string): string[] => {
  const shorter = new Set<string>()
  for (let at = 0; at < word.length; at++) shorter.add(word.slice(0, at) + word.slice(at + 1))
  return [...shorter]
}

/**
 * Makes the correction of words. It finds words at distance one by their deletions, so that a look-up costs only
 * the length of the word.
 */
function createCorrection(words: ReadonlySet<string>): (word: string) => string | undefined {
  const byDeletion = new Map<string, string[]>()
  for (const word of words) {
    if (word.length < correctedLengthMin || word.length > correctedLengthMax) continue
    for (const key of [word, ...deletions(word)]) byDeletion.set(key, [...(byDeletion.get(key) ?? []), word])
  }
  return (word) => {
    if (word.length < correctedLengthMin || word.length > correctedLengthMax) return undefined
    const found = new Set<string>()
    for (const key of [word, ...deletions(word)])
      for (const candidate of byDeletion.get(key) ?? [])
        if (Math.max(candidate.length, word.length) >= 5 && editDistance(word, candidate, 1) !== undefined)
          found.add(candidate)
    const [only, ...others] = found
    return others.length === 0 ? only : undefined
  }
}

export function createVocabulary(names: Names): Vocabulary {
  const byText = new Map<string, { concepts: Set<Concept>; named?: Named }>()
  for (const [concept, phrases] of Object.entries(concepts) as [Concept, string][])
    for (const phrase of phrases.split('|')) {
      const text = phrase
        .split(' ')
        .map((word) => contractions.get(word) ?? word)
        .join(' ')
      const known = byText.get(text) ?? { concepts: new Set<Concept>() }
      known.concepts.add(concept)
      byText.set(text, known)
    }
  const words = new Set<string>()
  for (const text of byText.keys()) for (const word of text.split(' ')) words.add(word)
  const correctable = new Set([...words].filter((word) => /^[a-z]+$/.test(word)))
  for (const [text, named] of names.phrases) {
    const known = byText.get(text) ?? { concepts: new Set<Concept>() }
    byText.set(text, { ...known, named })
  }
  const byFirstWord = new Map<string, Phrase[]>()
  for (const [text, found] of byText) {
    const parts = text.split(' ')
    const first = parts[0] ?? ''
    const isCommon = found.named !== undefined && (commonSymbols.has(text) || found.concepts.size > 0)
    const phrase: Phrase = { words: parts, concepts: [...found.concepts], isCommon }
    if (found.named) phrase.named = found.named
    byFirstWord.set(first, [...(byFirstWord.get(first) ?? []), phrase])
  }
  for (const phrases of byFirstWord.values()) phrases.sort((a, b) => b.words.length - a.words.length)
  const named = new Set([...names.phrases.keys()].flatMap((text) => text.split(' ')))
  return {
    byFirstWord,
    corrected: createCorrection(correctable),
    isKnown: (word) => words.has(word) || plainWords.has(word) || offTopicWords.has(word) || named.has(word),
  }
}
