import * as amounts from './amounts.ts'
import { indexWhere, type Reader, type Slots, take } from './clause-reader.ts'
import { unsearchedWords } from './english/word-lists.ts'
import { has, type Token } from './tag.ts'

/** Reads what a message says about a prediction market: its outcome, shares of it, and the words of its question. */

/** The unit of an amount that counts shares. */
export const sharesSymbol = 'shares'
const searchMax = 100

const outcomeOf = ({ words }: Token): string | undefined =>
  /^(?:my |on |of )?(yes|no)(?: shares| on)?$/.exec(words)?.[1]

export function readOutcome(reader: Reader, slots: Slots): void {
  const at = indexWhere(reader, (token) => outcomeOf(token) !== undefined)
  const token = reader.tokens[at]
  if (!token) return
  take(reader, at)
  slots.outcome = outcomeOf(token)!
}

/** A bare number counts shares. */
export function readShareAmount(reader: Reader, slots: Slots): void {
  const amount = amounts.findAmount(reader)
  if (!amount) return
  take(reader, amount.at)
  slots.amount = amount.kind === 'number' ? `${amount.text} ${sharesSymbol}` : amount.text
}

/** A phrase that only says that a prediction market is meant; others, such as `election`, also name the question. */
const isGeneric = ({ words, concepts }: Token): boolean =>
  unsearchedWords.has(words) ||
  (concepts.includes('PREDMKT') && !/^(election|rate cut|who wins)$/.test(words)) ||
  concepts.includes('PREDHELD') ||
  concepts.includes('SHARES') ||
  concepts.includes('BOOK') ||
  concepts.includes('ORDERS')

/** Takes every word that may name the question, also names of assets and numbers such as a year. */
export function readQuestion(reader: Reader, slots: Slots): void {
  const words = reader.tokens.flatMap((token, at) => {
    const isNumber = token.kind === 'quantity' && token.quantity?.unit === 'number'
    if (reader.taken.has(at) || (token.kind !== 'word' && !isNumber)) return []
    if (isGeneric(token) || has(token, 'POLITE', 'FILLER', 'MINE')) return []
    // The word behind a bare number may be what it counts, misspelt: `20 dllars`.
    if (token.concepts.length === 0 && !token.asset && reader.tokens[at - 1]?.quantity?.unit === 'number')
      return []
    take(reader, at)
    return token.kind === 'word' ? token.words : token.text.toLowerCase()
  })
  const said = words.join(' ').split(' ')
  const text = said
    .filter((word) => !unsearchedWords.has(word))
    .join(' ')
    .slice(0, searchMax)
  if (text !== '') slots.question = text
}
