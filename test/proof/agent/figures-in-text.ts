/** Compares the numbers that a text prints, line by line, with what they should be. */
import { fromUnits, rescale, toUnits } from '#kernel/money/money.ts'

export type Decimal = string
/** A line with these words has these numbers, in this order; `null` is any number. */
export type Expected = { words: readonly string[]; numbers: readonly (Decimal | null)[] }

const places = 18
const exact = (value: Decimal): bigint => toUnits(value, places)
const one = 10n ** BigInt(places)
export const plus = (a: Decimal, b: Decimal): Decimal => fromUnits(exact(a) + exact(b), places)
export const minus = (a: Decimal, b: Decimal): Decimal => fromUnits(exact(a) - exact(b), places)
export const times = (a: Decimal, b: Decimal): Decimal =>
  fromUnits(rescale(exact(a) * exact(b), 2 * places, places), places)
export const div = (a: Decimal, b: Decimal): Decimal => fromUnits((exact(a) * one) / exact(b), places)
export const units = (value: bigint, decimals: number): Decimal => fromUnits(value, decimals)

/** Ids, addresses and times are no figures. */
const unread =
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44}|\d{4}-\d\d-\d\dT[\d:.]+Z|agt_\w+/g

export const numbersOf = (line: string): string[] =>
  [...line.replace(unread, ' ').matchAll(/\u2212?\d[\d,]*(?:\.\d+)?/g)].map(([text]) =>
    text.replaceAll(',', '').replace('\u2212', '-'),
  )

/** Whether a number is the first digits of a value, six of them that count at least. */
function isCut(printed: string, value: Decimal): boolean {
  const [whole = '', fraction = ''] = value.split('.')
  const digits = whole.replace('-', '')
  const zeros = fraction.search(/[1-9]/)
  const shown = digits === '0' ? zeros + 6 : Math.max(2, 6 - digits.length)
  return printed === fromUnits(exact(`${whole}.${fraction.slice(0, shown)}0`), places)
}

/** Printed with at least two places, cut after six digits, or exactly, a number is the value rounded to its places. */
export function isPrinted(printed: string, value: Decimal): boolean {
  if (isCut(printed, value)) return true
  const shown = printed.split('.')[1]?.length ?? 0
  const off = exact(printed) - exact(value)
  const size = off < 0n ? -off : off
  if (shown < 2) return size === 0n
  return size * 2n <= 10n ** BigInt(Math.max(0, places - shown)) + 1n
}

const fits = (line: string, { words, numbers }: Expected): boolean => {
  const found = numbersOf(line)
  return (
    words.every((word) => line.includes(word)) &&
    found.length === numbers.length &&
    numbers.every((value, at) => value === null || isPrinted(found[at] ?? '', value))
  )
}

/** What is wrong with the numbers of a text: expected lines that are missing, and lines that nothing explains. */
export function mistakesOf(text: string, expected: readonly Expected[]): string[] {
  const lines = text.split('\n')
  const taken = new Set<number>()
  const missing = expected.flatMap((each) => {
    const at = lines.findIndex((line, index) => !taken.has(index) && fits(line, each))
    if (at < 0) return [`not said: ${each.words.join(' ')} ${each.numbers.join(' ')}`]
    taken.add(at)
    return []
  })
  const unexplained = lines.flatMap((line, at) =>
    !taken.has(at) && numbersOf(line).length > 0 ? [`said: ${line}`] : [],
  )
  return [...missing, ...unexplained]
}
