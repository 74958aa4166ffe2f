import type { Citation } from '#kernel/wire/chat-answerer.ts'
import { isRecord, type Json } from '#kernel/wire/json.ts'

/** An answer may contain the numbers of results, those in the user's words, and those computed from them. */

export type FigureSource = { tool: string; pointer: string; fetchedAt: Date }
type Figure = { units: bigint; source: FigureSource | undefined }

const figuresMax = 20_000
const scale = 36

/** The digits of addresses, ids and times are no numbers. */
const opaque =
  /0x[0-9a-f]+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\d{4}-\d{2}-\d{2}(?:[T ][\d:.]+Z?)?|\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{20,}\b|\[\d+\]/gi
const numberPattern = /(?<![\p{L}\d_.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d{1,3})?/giu
/** The number at the beginning of a list item, which is no figure. */
const listMark = /^\s*\d{1,2}[.)](?=\s)/
const durationUnit =
  /^\s?-?(?:h|hr|hrs|hours?|d|days?|w|weeks?|mo|months?|y|years?|min|minutes?|s|seconds?)\b/i
const multiples: Readonly<Record<string, number>> = { k: 3, m: 6, million: 6, b: 9, bn: 9, billion: 9 }

/** Returns the units of a decimal, truncated after 36 places; undefined if the text is no decimal or too large. */
function unitsOf(text: string): bigint | undefined {
  const match = /^-?(\d+)(?:\.(\d+))?(?:e([-+]?\d{1,3}))?$/i.exec(text)
  if (!match || text.length > 200) return undefined
  const [, whole = '0', fraction = '', exponent = '0'] = match
  const digits = BigInt(whole + fraction)
  const shift = scale - fraction.length + Number(exponent)
  if (shift > 400) return undefined
  return shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift)
}

export type PrintedNumber = {
  text: string
  at: number
  units: bigint
  places: number
  shift: number
  isPercent: boolean
}

/** Finds the numbers of a text and their positions; a length of time does not count. */
export function numbersIn(text: string): PrintedNumber[] {
  const masked = text.replace(opaque, (found) => ' '.repeat(found.length))
  const mark = listMark.exec(masked)?.[0].length ?? 0
  const found: PrintedNumber[] = []
  for (const { 0: printed, index } of masked.matchAll(numberPattern)) {
    if (index < mark) continue
    const rest = masked.slice(index + printed.length)
    if (durationUnit.test(rest)) continue
    const unit = /^\s?(k|m|million|bn|b|billion)\b/i.exec(rest)?.[1]?.toLowerCase()
    const plain = printed.replaceAll(',', '')
    const units = unitsOf(plain)
    if (units === undefined) continue
    const places = /e/i.test(plain) ? scale : (plain.split('.')[1]?.length ?? 0)
    const shift = unit === undefined ? 0 : (multiples[unit] ?? 0)
    found.push({ text: printed, at: index, units, places, shift, isPercent: /^\s?(?:%|percent)/i.test(rest) })
  }
  return found
}

type Range = { from: bigint; to: bigint }

/**
 * Returns the range of values that print as a number, rounded or truncated to its digits; the range excludes `to`.
 */
function rangeOf({ units, places, shift }: PrintedNumber): Range {
  const step = places >= scale ? 1n : 10n ** BigInt(scale - places)
  const multiple = 10n ** BigInt(shift)
  return { from: (units - step / 2n) * multiple, to: (units + step) * multiple }
}
/** Converts a range of percentages to the range of the fractions that are printed as these percentages. */
const ofFraction = ({ from, to }: Range): Range => ({ from: from / 100n, to: (to + 99n) / 100n })

export function createKnownFigures() {
  const figures: Figure[] = []
  let sorted: Figure[] | undefined
  const push = (figure: Figure): void => {
    if (figures.length >= figuresMax) return
    figures.push(figure)
    sorted = undefined
  }
  const add = (text: string, source: FigureSource | undefined): void => {
    const units = unitsOf(text)
    if (units !== undefined) push({ units, source })
  }
  const addText = (text: string, source: FigureSource | undefined): void => {
    if (/^-?\d+(?:\.\d+)?(?:e[-+]?\d{1,3})?$/i.test(text)) add(text, source)
    else
      for (const { text: printed, shift, units } of numbersIn(text)) {
        add(printed.replaceAll(',', ''), source)
        if (shift > 0) push({ units: units * 10n ** BigInt(shift), source })
      }
  }
  const addValue = (value: Json, pointer: string, from: Omit<FigureSource, 'pointer'>): void => {
    const source = { ...from, pointer }
    if (typeof value === 'number') add(String(value), source)
    else if (typeof value === 'string') addText(value, source)
    else if (Array.isArray(value)) {
      add(String(value.length), source)
      for (const [at, each] of value.entries()) addValue(each, `${pointer}/${at}`, from)
    } else if (isRecord(value))
      for (const [name, each] of Object.entries(value)) {
        const part = name.replaceAll('~', '~0').replaceAll('/', '~1')
        addValue(each as Json, `${pointer}/${part}`, from)
      }
  }
  /**
   * Finds the first figure from a value on, by a binary search, because an answer may have thousands of numbers,
   * and a turn thousands of values.
   */
  const firstFrom = (from: bigint): Figure | undefined => {
    sorted ??= figures.toSorted((a, b) => (a.units < b.units ? -1 : a.units > b.units ? 1 : 0))
    let [low, high] = [0, sorted.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (sorted[middle]!.units < from) low = middle + 1
      else high = middle
    }
    return sorted[low]
  }
  const firstIn = ({ from, to }: Range): Figure | undefined => {
    const found = firstFrom(from)
    return found && found.units < to ? found : undefined
  }
  const find = (printed: PrintedNumber): Figure | undefined => {
    const exact = printed.units * 10n ** BigInt(printed.shift)
    const range = rangeOf(printed)
    return (
      firstIn({ from: exact, to: exact + 1n }) ??
      firstIn(range) ??
      (printed.isPercent ? firstIn(ofFraction(range)) : undefined)
    )
  }
  return {
    addSaid: (text: string) => addText(text, undefined),
    addOutput: (output: Json, from: Omit<FigureSource, 'pointer'>) => addValue(output, '', from),
    addComputed: (value: string) => add(value, undefined),
    find,
    hasExactly: (text: string): boolean => {
      const units = unitsOf(text)
      return units !== undefined && firstFrom(units)?.units === units
    },
    unknownIn: (text: string): PrintedNumber[] => numbersIn(text).filter((printed) => !find(printed)),
  }
}
export type KnownFigures = ReturnType<typeof createKnownFigures>

const remark = ' (unverified)'

export function markUnknown(text: string, figures: KnownFigures): string {
  let marked = text
  for (const { text: printed, at } of figures.unknownIn(text).reverse()) {
    const end = at + printed.length
    const unit = /^\s?(?:%|[A-Za-z]{1,10}\b)/.exec(text.slice(end))?.[0] ?? ''
    const place = end + unit.length
    if (!text.slice(end).startsWith(remark) && !text.slice(place).startsWith(remark))
      marked = marked.slice(0, place) + remark + marked.slice(place)
  }
  return marked
}

const citationsMax = 200

export function citationsOf(text: string, figures: KnownFigures): Citation[] {
  const found = new Map<string, Citation>()
  for (const printed of numbersIn(text)) {
    const source = figures.find(printed)?.source
    if (!source || found.size >= citationsMax) continue
    const { tool, pointer, fetchedAt } = source
    const key = `${tool} ${pointer}`
    if (!found.has(key))
      found.set(key, { n: found.size + 1, tool, pointer, fetched_at: fetchedAt.toISOString() })
  }
  return [...found.values()]
}
