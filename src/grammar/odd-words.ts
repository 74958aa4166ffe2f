import { harmlessWords } from './english/word-lists.ts'
import { list } from './feature-rules.ts'
import { has, type Token } from './tag.ts'

/** Finds words that do not belong in an order. An order with such a word runs only after the user has confirmed it. */

/** The concepts of exceptions, other people, the past, and questions, which do not belong in an order. */
const strange = list(
  'EXCEPT QUESTION OTHERPERSON PAST ~yesterday EVERY NEUTRAL NEWS FORECAST PREDMKT HEALTH EXPLAIN SHOULD ANALYSIS COMPARE',
)
const fitting = list('POLITE WANT PERTX DAILY ALL')

function isOdd(token: Token): boolean {
  const { kind, words, concepts, asset, chain, quantity } = token
  if (kind !== 'word' || asset || chain || quantity) return false
  if (concepts.length === 0) return !harmlessWords.has(words)
  return has(token, ...strange) && !has(token, ...fitting)
}

export const oddWord = (tokens: readonly Token[]): string | undefined => tokens.find(isOdd)?.text
