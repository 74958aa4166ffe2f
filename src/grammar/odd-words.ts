import { harmlessWords } from './english/word-lists.ts'
import { list } from './feature-rules.ts'
import type { Frame } from './intent-frame.ts'
import { has, type Token } from './tag.ts'

/** Finds words that do not belong in an order. An order with such a word runs only after the user has confirmed it. */

/** The concepts of exceptions, other people, the past, and questions, which do not belong in an order. */
const strange = list(
  'EXCEPT QUESTION OTHERPERSON PAST ~yesterday EVERY NEUTRAL NEWS FORECAST PREDMKT HEALTH EXPLAIN SHOULD ANALYSIS COMPARE',
)
const fitting = list('POLITE WANT PERTX DAILY ALL')

type Cues = NonNullable<Frame['cues']>

function isOdd(token: Token, cues: Cues): boolean {
  const { kind, words, concepts, asset, chain, quantity } = token
  if (kind !== 'word' || asset || chain || quantity) return false
  if (concepts.length === 0) return !harmlessWords.has(words)
  const odd = strange.filter((concept) => !(concept in cues))
  return has(token, ...odd) && !has(token, ...fitting)
}

/** A word that speaks for the intent is not odd, and neither is an unknown one that a slot has taken. */
export const oddWord = (
  tokens: readonly Token[],
  { cues = {}, taken }: { cues?: Cues | undefined; taken: ReadonlySet<number> },
): string | undefined =>
  tokens.find((token, at) => isOdd(token, cues) && !(token.concepts.length === 0 && taken.has(at)))?.text
