import { fixedPointDecimals, isDecimal, toUnits } from '#kernel/money/money.ts'
import { printedValue, scales } from '#market/figure-text.ts'
import { type Claim, claimIdOf } from './claim.ts'

/**
 * This module checks sentences against claims. Each number must be followed by the mark of a claim before the next
 * number, and must be the value of this claim, rounded to the digits that are printed, in its unit.
 */

export type Judgement = { ok: true } | { ok: false; reason: string }
export type CheckContext = {
  claims: ReadonlyMap<string, Claim>
  /** Phrases whose digits are no figures, such as the names of indicators and of assets. */
  terms: readonly string[]
}

const mark = /\[(\d{1,4})\]/y
const timestamp = /\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?(?: UTC)?/y
const figure = /[-\u2212+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\d.,]*\d)/y
const unitWord = /%|USD/y
const foreignNumeral = /[\p{N}--[0-9]]/v
const unitAfter = /(?: ?(bn|M|k)(?!\p{L}))?(?: ?(%|USD|days?\b))?/uy
/** Words for numbers, which a sentence may not contain, because no mark belongs to a number in words. */
const numberWords =
  /\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|trillion|dozen|half|halve[ds]?|thirds?|quarters?|double[ds]?|triple[ds]?|twofold|tenfold|twice|thrice|percent)\b/i

type Figure = { text: string; scale: string | undefined; unit: string | undefined; isTime: boolean }

const readAt = (pattern: RegExp, text: string, at: number): RegExpExecArray | null => {
  pattern.lastIndex = at
  return pattern.exec(text)
}

const wrong = (reason: string): Judgement => ({ ok: false, reason })

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Removes terms from a sentence, but only as whole words, so that no part of a number counts as a term. */
function withoutTerms(sentence: string, terms: readonly string[]): string {
  const known = terms.filter((term) => /\p{N}/u.test(term)).sort((a, b) => b.length - a.length)
  if (known.length === 0) return sentence
  const pattern = new RegExp(
    `(?<![\\p{L}\\p{N}.,\\-\u2212+])(?:${known.map(escaped).join('|')})(?![\\p{L}\\p{N}]|[.,]\\d)`,
    'gu',
  )
  return sentence.replace(pattern, 'term')
}

/** Removes names and words that claims contain from a sentence, if the mark of their claim follows. */
function withoutNames(sentence: string, claims: CheckContext['claims']): string {
  let text = ''
  let end = 0
  for (const cited of sentence.matchAll(/ ?\[(\d{1,4})\]/g)) {
    text += sentence.slice(end, cited.index)
    end = cited.index + cited[0].length
    const claim = claims.get(claimIdOf(cited[1] ?? ''))
    const name = claim?.unit === 'text' || claim?.unit === 'word' ? printedValue(claim) : undefined
    if (name !== undefined && text.endsWith(name)) text = `${text.slice(0, -name.length)}name`
    text += cited[0]
  }
  return text + sentence.slice(end)
}

function isSameFigure({ text, scale, unit }: Figure, claim: Claim): boolean {
  if (!isDecimal(claim.value)) return false
  const plain = text
    .replaceAll(',', '')
    .replace('\u2212', '-')
    .replace(/^\+/, '')
    .replace(/^(-?)0+(?=\d)/, '$1')
  const places = plain.split('.')[1]?.length ?? 0
  if (places > fixedPointDecimals) return false
  const factor = scales.find(({ word }) => word === scale)?.factor ?? 1n
  const shown = toUnits(plain, fixedPointDecimals) * factor
  const isPercent = claim.unit === 'fraction' || claim.unit === 'hourly'
  const value = toUnits(claim.value, fixedPointDecimals) * (isPercent ? 100n : 1n)
  const expected = unitWordOf(claim)
  if (expected !== undefined ? unit?.replace(/s$/, '') !== expected : unit !== undefined) return false
  const difference = shown > value ? shown - value : value - shown
  const size = value < 0n ? -value : value
  const step = 10n ** BigInt(fixedPointDecimals - places) * factor
  return difference * 2n <= step && difference * 20n <= size
}

const unitWordOf = ({ unit }: Claim): string | undefined => {
  if (unit === 'fraction' || unit === 'hourly') return '%'
  if (unit === 'usd' || unit === 'price' || unit === 'volume') return 'USD'
  return unit === 'days' ? 'day' : undefined
}

const isSame = (found: Figure, claim: Claim): boolean => {
  if (claim.unit === 'time') return found.isTime && (printedValue(claim) ?? '').startsWith(found.text)
  if (claim.unit === 'text' || claim.unit === 'word') return false
  return !found.isTime && isSameFigure(found, claim)
}

/** Whether every number of the sentence is the value of the claim that it cites. */
export function checkSentence(sentence: string, { claims, terms }: CheckContext): Judgement {
  // Foreign numerals are checked before normalisation, which turns some of them into letters.
  if (foreignNumeral.test(sentence)) return wrong('a number of unknown form')
  const plain = withoutNames(sentence, claims).normalize('NFKC').replaceAll('\u2212', '-')
  const text = withoutTerms(plain, terms)
  let open: Figure | undefined
  for (let at = 0; at < text.length; ) {
    const cited = readAt(mark, text, at)
    if (cited) {
      const claim = claims.get(claimIdOf(cited[1] ?? ''))
      if (!claim) return wrong(`there is no claim ${cited[0]}`)
      if (open && !isSame(open, claim)) return wrong(`${open.text} is not the value of ${cited[0]}`)
      open = undefined
      at += cited[0].length
      continue
    }
    const found = figureAt(text, at)
    if (found) {
      if (open) return wrong(`${open.text} has no mark`)
      open = found.figure
      at = found.end
      continue
    }
    if (/\d/.test(text[at] ?? '')) return wrong('a number of unknown form')
    if (open && readAt(unitWord, text, at)) return wrong(`${open.text} is far from its unit`)
    at++
  }
  if (open) return wrong(`${open.text} has no mark`)
  const words = numberWords.exec(text)
  return words ? wrong(`the number "${words[0]}" is in words`) : { ok: true }
}

function figureAt(text: string, at: number): { figure: Figure; end: number } | undefined {
  // A sign belongs to the number, but a hyphen within a word does not.
  if (/[-+]/.test(text[at] ?? '') && /[\p{L}\p{N}]/u.test(text[at - 1] ?? '')) return undefined
  if (/\p{L}/u.test(text[at - 1] ?? '')) return undefined
  const time = readAt(timestamp, text, at)
  if (time)
    return {
      figure: { text: time[0], scale: undefined, unit: undefined, isTime: true },
      end: at + time[0].length,
    }
  const number = readAt(figure, text, at)
  if (!number) return undefined
  const end = at + number[0].length
  const after = readAt(unitAfter, text, end)
  const [whole = '', scale, word] = after ?? []
  const unit = word ?? (text[at - 1] === '$' ? 'USD' : undefined)
  return { figure: { text: number[0], scale, unit, isTime: false }, end: end + whole.length }
}

/** Splits prose, as a model writes it, into sentences; a point within a number or a mark ends no sentence. */
export const sentencesOf = (prose: string): string[] =>
  prose
    .split(/(?<=[.!?](?:\s*\[\d{1,4}\])*)\s+(?=[^\p{Ll}\s[])|\n+/u)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')
