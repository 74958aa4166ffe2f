import { isCounting } from './clause-reader.ts'
import type { Clause } from './clauses.ts'
import { harmlessWords, offTopicWords, plainWords, questionWords } from './english/word-lists.ts'
import { type Concept, list } from './feature-rules.ts'
import { type Frame, isMutating } from './intent-frame.ts'
import { has, type Token } from './tag.ts'

/** Finds the words of a question that its answer does not take into account, so that the answer can say so. */

const trades = list('BUY SELL SWAP BRIDGE LONG SHORT DEPOSIT WITHDRAW CLOSE')

const isEmpty = (words: string): boolean =>
  words === '' ||
  (!offTopicWords.has(words) &&
    (plainWords.has(words) || harmlessWords.has(words) || questionWords.has(words)))

/** Whether a word says something, but nothing that the frame reads. */
function isUnread(token: Token, frame: Frame): boolean {
  if (token.kind === 'quoted') return true
  if (token.kind !== 'word' || token.asset || token.chain || token.quantity) return false
  if (token.concepts.length === 0) return !isEmpty(token.words) && !isCounting(token)
  if (!has(token, ...trades) || has(token, 'TRADEWORD') || token.isNoun) return false
  const spoken: ReadonlySet<string> = new Set([...frame.when.flat(2), ...Object.keys(frame.cues ?? {})])
  return !token.concepts.some((concept: Concept) => spoken.has(concept))
}

const spoken = (tokens: readonly Token[]): string => tokens.map(({ text }) => text).join(' ')

/** Returns the words of a clause that the answer of a read leaves out, in spoken order. */
export function unreadWords(clause: Clause, frame: Frame, taken: ReadonlySet<number>): string | undefined {
  if (isMutating(frame) || frame.effect === 'none') return undefined
  const left = clause.tokens.filter((token, at) => !taken.has(at) && isUnread(token, frame))
  return left.length === 0 ? undefined : spoken(left)
}

/** Returns a whole clause as it was said, without marks. */
export const clauseText = ({ tokens }: Pick<Clause, 'tokens'>): string =>
  spoken(tokens.filter(({ kind }) => kind !== 'mark'))
