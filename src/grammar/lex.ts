import { contractions } from './english/word-lists.ts'
import { type Quantity, readQuantity, runEnd } from './quantity.ts'

/**
 * A lexeme is a piece of the text. Quoted text is one opaque lexeme, so that no word in it can act; addresses keep
 * their spelling.
 */
export type Lexeme = {
  kind: 'word' | 'quantity' | 'address' | 'uuid' | 'quoted' | 'mark' | 'unclear'
  text: string
  /** The word in lower case; empty for a quotation or a quantity. */
  word: string
  quantity?: Quantity
  /** True for `$ETH`, and for a word in capitals in a text that is not all in capitals. */
  isSymbol?: true
}

export const textLengthMax = 8_000
export const lexemesMax = 400

// The pattern matches control and format characters, such as zero-width and bidirectional marks, but no line break.
const invisible = /(?!\n)[\p{Cc}\p{Cf}]/gu
const singleQuotes = /[\u2018\u2019\u201a\u201b\u2032\u0060\u00b4]/g
const doubleQuotes = /[\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb]/g
/** What people draw between what is given and what is wanted. */
const arrows = /[-=]>|\u2192/g
const minusSigns = /[\u2012\u2013\u2014\u2212]/g

/** Gives one spelling to each character that people type in several ways. */
export const normalise = (text: string): string =>
  text
    .slice(0, textLengthMax)
    .normalize('NFKC')
    .slice(0, textLengthMax)
    .replaceAll('\t', ' ')
    .replace(invisible, '')
    .replace(singleQuotes, "'")
    .replace(doubleQuotes, '"')
    .replace(minusSigns, '-')
    .replace(arrows, ' to ')

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
/** Whether a text is base58 of 32 bytes, as Solana writes an address. */
export function isSolanaAddress(text: string): boolean {
  if (!/^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(text)) return false
  let value = 0n
  for (const char of text) value = value * 58n + BigInt(alphabet.indexOf(char))
  let zeros = 0
  while (text[zeros] === '1') zeros++
  const bytes = value === 0n ? 0 : Math.ceil(value.toString(16).length / 2)
  return zeros + bytes === 32
}

const evmAddress = /^0x[0-9a-fA-F]{40}$/
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const wordRun = /[\p{L}\p{N}_]/u
const isWordChar = (char: string | undefined): boolean => char !== undefined && wordRun.test(char)

const runOf = (text: string, from: number, lengthMax?: number): string =>
  text.slice(from, runEnd(text, from, isWordChar, lengthMax))

/**
 * Returns the word that begins at a position: `don't` is one word, but the quote in `'buy all'` belongs to no word.
 */
const wordOf = (text: string, from: number): string => {
  const first = runOf(text, from)
  const after = from + first.length
  if (text[after] !== "'" || !isWordChar(text[after + 1])) return first
  return `${first}'${runOf(text, after + 1)}`
}

/** The longest address has 44 characters, and a run of one more character is no address. */
const addressLengthMax = 44

/**
 * Reads a UUID or an address. Text that begins with 0x and is no address is unclear, and never a number. Text that is
 * no identifier is read again as a word or a number, so only as many characters are read here as the longest address
 * has, plus one.
 */
function readIdentifier(text: string, at: number): Lexeme | undefined {
  const id = text.slice(at, at + 36)
  if (uuid.test(id) && !isWordChar(text[at + 36])) return { kind: 'uuid', text: id, word: id.toLowerCase() }
  const run = runOf(text, at, addressLengthMax + 1)
  if (evmAddress.test(run)) return { kind: 'address', text: run, word: run }
  if (/^0x/i.test(run)) {
    const whole = runOf(text, at)
    return { kind: 'unclear', text: whole, word: whole }
  }
  if (run.length >= 32 && isSolanaAddress(run)) return { kind: 'address', text: run, word: run }
  return undefined
}

/** Returns where the quote that opens at `at` closes; -1 if it does not close. */
function closingQuote(text: string, at: number): number {
  const quote = text[at] ?? ''
  for (let end = text.indexOf(quote, at + 1); end > 0; end = text.indexOf(quote, end + 1))
    if (quote === '"' || !isWordChar(text[end + 1])) return end
  return -1
}

/** Whether a quote opens at a position: a single quote needs a boundary before it. */
const opensQuote = (text: string, at: number): boolean =>
  text[at] === '"' || (text[at] === "'" && !isWordChar(text[at - 1]))

const marks = '.!?;:,\n@<>=&+/()~|#*'

/** The lexemes of a text, and the part of the text that they cover. */
export type Reading = { text: string; lexemes: Lexeme[]; isCut: boolean }

/** Reads a text once from left to right; each step takes at least one character. */
export function lex(text: string): Reading {
  const normalised = normalise(text)
  const { lexemes, end } = lexemesOf(normalised)
  const isCut = end < normalised.length || text.length > textLengthMax
  return { text: text.slice(0, textLengthMax), lexemes, isCut }
}

/**
 * Returns the lexemes of normalised text, and where the reading ends. Each character is looked at a bounded number
 * of times.
 */
export function lexemesOf(text: string): { lexemes: Lexeme[]; end: number } {
  const isShouted = text.length > 3 && text === text.toUpperCase()
  const lexemes: Lexeme[] = []
  let at = 0
  // If nothing closes a single quote, nothing closes a later one either.
  let mayClose = true
  while (at < text.length && lexemes.length < lexemesMax) {
    const char = text[at] ?? ''
    if (opensQuote(text, at) && (char === '"' || mayClose)) {
      const closing = closingQuote(text, at)
      if (char === "'") mayClose = closing >= 0
      // An open double quote covers the rest of the text, because nobody knows where it was meant to end.
      const end = closing >= 0 ? closing + 1 : char === '"' ? text.length : at
      if (end > at) {
        lexemes.push({ kind: 'quoted', text: text.slice(at, end), word: '' })
        at = end
        continue
      }
    }
    const identifier = isWordChar(char) ? readIdentifier(text, at) : undefined
    if (identifier) {
      lexemes.push(identifier)
      at += identifier.text.length
      continue
    }
    const number = readQuantity(text, at)
    if (number) {
      const own = { text: text.slice(at, number.end), word: '' }
      if ('quantity' in number) lexemes.push({ kind: 'quantity', ...own, quantity: number.quantity })
      else lexemes.push({ kind: 'unclear', ...own })
      at = number.end
      continue
    }
    if (isWordChar(char) || (char === '$' && isWordChar(text[at + 1]))) {
      const start = char === '$' ? at + 1 : at
      const found = wordOf(text, start)
      const isSymbol = char === '$' || (!isShouted && found.length > 1 && found === found.toUpperCase())
      const word = found.toLowerCase()
      const spelt = contractions.get(word)
      for (const part of spelt?.split(' ') ?? [word]) {
        const lexeme: Lexeme = { kind: 'word', text: spelt === undefined ? found : part, word: part }
        if (isSymbol && spelt === undefined) lexeme.isSymbol = true
        lexemes.push(lexeme)
      }
      at = start + found.length
      continue
    }
    if (marks.includes(char)) lexemes.push({ kind: 'mark', text: char, word: char })
    at++
  }
  return { lexemes, end: at }
}
