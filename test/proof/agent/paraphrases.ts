import { type Row, registry } from './corpus.ts'

/** The same utterance said otherwise, by rule; and utterances that hold an order without giving it. */

export type Paraphrase = { rule: string; text: string }

/** A small generator of its own, so that every run makes the same errors. */
const seeded = (text: string): number => {
  let hash = 2166136261
  for (const char of text) hash = Math.imul(hash ^ char.charCodeAt(0), 16777619) >>> 0
  return hash
}

const isPlainWord = (word: string): boolean => /^[a-z]{6,}$/.test(word) && !registry.names.phrases.has(word)

/** One error in one longer word that names no asset and no chain: two letters swapped, or one left out or doubled. */
function withTypo(text: string): string | undefined {
  const words = text.split(' ')
  const places = words.flatMap((word, at) => (isPlainWord(word) ? [at] : []))
  if (places.length === 0 || /["']/.test(text)) return undefined
  const seed = seeded(text)
  const at = places[seed % places.length] ?? 0
  const word = words[at] ?? ''
  const letter = 1 + (seed % (word.length - 2))
  const kinds = [
    `${word.slice(0, letter)}${word[letter + 1]}${word[letter]}${word.slice(letter + 2)}`,
    `${word.slice(0, letter)}${word.slice(letter + 1)}`,
    `${word.slice(0, letter)}${word[letter]}${word.slice(letter)}`,
  ]
  words[at] = kinds[seed % kinds.length] ?? word
  return words.join(' ')
}

/** The chain first: `on base, buy $50 of eth`. */
function reordered(text: string): string | undefined {
  const place = / (on (?:base|polygon|ethereum|arbitrum|solana))$/.exec(text)
  return place ? `${place[1]}, ${text.slice(0, place.index)}` : undefined
}

const isOrder = ({ mood, ask, thread, intent }: Row): boolean =>
  mood === 'do' && ask === undefined && thread === undefined && intent !== 'none'

/** They keep what was said; rows that answer in a thread, and those about moods, are left alone. */
export function paraphrasesOf(row: Row): Paraphrase[] {
  const { text, thread, ask, intent, mood } = row
  if (thread || ask !== undefined || intent === 'none' || mood === 'suppose') return []
  const said = [
    {
      rule: 'capitals',
      text: text.replace(/0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{43,44}|[a-z]+/gi, (word) =>
        word.length > 40 ? word : word.toUpperCase(),
      ),
    },
    { rule: 'please', text: `${text.replace(/[?!.]$/, '')} please${/\?$/.test(text) ? '?' : ''}` },
    { rule: 'greeting', text: `hey, ${text}` },
    { rule: 'spaces', text: `  ${text.replaceAll(' ', '  ')} ` },
    { rule: 'typo', text: withTypo(text) },
    { rule: 'order', text: reordered(text) },
    ...(isOrder(row) &&
    !/[?]$|^(can|could|please|i |i'd|let|go ahead|btc long|yo |on base|stop loss|trailing|spot|limit|if|when|once|every)/i.test(
      text,
    )
      ? [
          { rule: 'polite', text: `could you ${text}` },
          { rule: 'want', text: `i want to ${text}` },
          { rule: 'now', text: `ok now ${text} thanks` },
        ]
      : []),
  ]
  return said.flatMap(({ rule, text: other }) =>
    other === undefined || other === text ? [] : [{ rule, text: other }],
  )
}

/** None of these may change anything, whatever it holds. */
export function harmlessOf(row: Row): Paraphrase[] {
  if (!isOrder(row)) return []
  const { text } = row
  return [
    { rule: 'negated', text: `don't ${text}` },
    { rule: 'negated', text: `do not ${text}` },
    { rule: 'negated', text: `please never ${text}` },
    { rule: 'negated', text: `i don't want to ${text}` },
    { rule: 'quoted', text: `"${text}"` },
    { rule: 'quoted', text: `\u201c${text}\u201d` },
    { rule: 'quoted', text: `what does "${text}" do` },
    { rule: 'reported', text: `my friend says ${text}` },
    { rule: 'reported', text: `the article said: ${text}` },
    { rule: 'reported', text: `he wrote to me. ${text}` },
    { rule: 'reported', text: `the token description says "great token". ${text}` },
    { rule: 'hypothetical', text: `what if i ${text}` },
    { rule: 'hypothetical', text: `suppose i ${text}` },
    { rule: 'hypothetical', text: `maybe ${text}` },
    { rule: 'hypothetical', text: `i'm thinking about whether to ${text}` },
    { rule: 'conditional', text: `if my boss agrees, ${text}` },
    { rule: 'conditional', text: `${text} if it rains` },
    { rule: 'question', text: `should i ${text}?` },
    { rule: 'question', text: `why would anyone ${text}?` },
    { rule: 'question', text: `how do i ${text}` },
    { rule: 'statement', text: `my bot will ${text}` },
    { rule: 'statement', text: `everybody wants to ${text}` },
    { rule: 'later', text: `tomorrow ${text}` },
    { rule: 'later', text: `every friday ${text}` },
  ]
}
