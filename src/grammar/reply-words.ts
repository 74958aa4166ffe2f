import { leadingWords } from './english/word-lists.ts'
import { list } from './feature-rules.ts'
import type { Choice } from './question-choices.ts'
import { has, type Token } from './tag.ts'
import type { Ask } from './understanding.ts'

/** Reads the words of a short message: whether it is only values, a doubt, or one of the choices of a question. */

const ellipsisTokensMax = 12
const links = list(
  'FILLER OVERRIDE TO ON FROM OF AT MINE PAYWITH POLITE IT LEVERAGE CHAINWORD AGAIN THEN TOKENWORD STOP TARGET SLIPPAGE ALL REST ISOLATED CROSS EVERY PAST_SPAN PERP SPOT',
)

/** Whether a message has only values and linking words. */
export const isElliptic = (tokens: readonly Token[]): boolean =>
  tokens.length <= ellipsisTokensMax &&
  tokens.every(
    (token) =>
      token.kind === 'mark' ||
      token.kind === 'quantity' ||
      token.asset !== undefined ||
      token.chain !== undefined ||
      has(token, ...links) ||
      token.concepts.some((concept) => concept.startsWith('~') || concept.startsWith('tf')),
  )
export const hasValue = (tokens: readonly Token[]): boolean =>
  tokens.some(
    (token) =>
      token.kind === 'quantity' ||
      token.asset !== undefined ||
      token.chain !== undefined ||
      has(token, 'ALL', 'REST', 'PERP', 'SPOT') ||
      token.concepts.some((concept) => concept.startsWith('~')),
  )

const ordinals = list('ORDINAL1 ORDINAL2 ORDINAL3 ORDINAL4')
const choosing = list('FILLER OVERRIDE ACCEPT DECLINE RECOMMENDATION IT AT MINE TO ON FROM OF')
const isOfChoice = (token: Token): boolean => token.kind === 'mark' || has(token, ...choosing, ...ordinals)

const doubts = list('NEGATE QUESTION EXCEPT IF SUPPOSE REPORT EXPLAIN SHOULD')
/** Whether a reply is doubtful: `base?` and `not the vault` are no answers. */
export const isDoubtful = (tokens: readonly Token[]): boolean =>
  tokens.some((token) => token.words === '?' || (has(token, ...doubts) && !has(token, 'ACCEPT', 'DECLINE')))

/** Returns the zero-based position that a reply such as `the second` names among `count` choices. */
export function ordinalOf(tokens: readonly Token[], count: number): number | undefined {
  const spoken = ordinals.findIndex((concept) => tokens.some((token) => has(token, concept)))
  if (spoken >= 0) return spoken < count && tokens.every(isOfChoice) ? spoken : undefined
  const values = tokens.filter(({ kind }) => kind === 'quantity')
  const [only] = values
  if (values.length !== 1 || only?.quantity?.unit !== 'number' || !/^[1-9]$/.test(only.quantity.value))
    return undefined
  const rest = tokens.filter(
    (token) => token !== only && token.kind !== 'mark' && !has(token, 'FILLER', 'OVERRIDE', 'AT'),
  )
  const at = Number(only.quantity.value) - 1
  return rest.length === 0 && at < count ? at : undefined
}

const simple = (text: string): string => text.toLowerCase().replace(leadingWords, '').trim()
/**
 * Returns a text without the full stops and exclamation marks at its end. The loop takes linear time; a regular
 * expression would start again at each mark of a long run.
 */
function withoutEnd(text: string): string {
  let end = text.length
  while (text[end - 1] === '.' || text[end - 1] === '!') end--
  return text.slice(0, end)
}
/** Returns the choice that a reply names by its number or by its words. */
export function choiceOf({ choices }: Ask, tokens: readonly Token[], text: string): Choice | undefined {
  const at = ordinalOf(tokens, choices.length)
  if (at !== undefined) return choices[at]
  const said = simple(withoutEnd(text))
  if (said.length < 3) return undefined
  const named = choices.filter(({ label }) => ` ${simple(label)} `.includes(` ${said} `))
  return named.length === 1 ? named[0] : undefined
}
