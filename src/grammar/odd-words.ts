import { has, type Token } from './tag.ts'

/** Words that an order does not hold. While one is left, the order is repeated as a question. */

/** Little words that change nothing about an order. */
const harmless = new Set(
  'me us i it you of by back bag bags stack existing current own total value amount size equivalent together both'.split(
    ' ',
  ),
)
/** Exceptions, other people, the past, and questions inside an order. */
const strange =
  'EXCEPT QUESTION OTHERPERSON PAST ~yesterday EVERY NEUTRAL NEWS FORECAST PREDMKT HEALTH EXPLAIN SHOULD ANALYSIS COMPARE'.split(
    ' ',
  )
const fitting = ['POLITE', 'WANT', 'PERTX', 'DAILY', 'ALL']

function isOdd(token: Token): boolean {
  const { kind, words, concepts, asset, chain, quantity } = token
  if (kind !== 'word' || asset || chain || quantity) return false
  if (concepts.length === 0) return !harmless.has(words)
  return has(token, ...strange) && !has(token, ...fitting)
}

export const oddWord = (tokens: readonly Token[]): string | undefined => tokens.find(isOdd)?.text
