import { rounded } from '#kernel/money/figure-format.ts'
import { fixedPointDecimals, fixedPointOne, fromUnits, isDecimal, toUnits } from '#kernel/money/money.ts'

/** Figures are printed rounded half away from zero, with at least two significant digits. */

export type Unit =
  | 'usd'
  /** Dollars of a whole market, in thousands, millions or billions. */
  | 'volume'
  | 'price'
  | 'fraction'
  | 'hourly'
  | 'index'
  | 'ratio'
  | 'size'
  | 'count'
  | 'days'
  | 'time'
  /** A word of the gateway, such as a status. */
  | 'word'
  /** A name that a stranger may have written, which is printed in quotation marks. */
  | 'text'

const digitsMin = 2
const ownWord = /^[a-z][a-z0-9_]{0,39}$/

const times = (value: string, factor: bigint): string =>
  fromUnits(toUnits(value, fixedPointDecimals) * factor, fixedPointDecimals)
const dividedBy = (value: string, divisor: bigint): string =>
  fromUnits(toUnits(value, fixedPointDecimals) / divisor, fixedPointDecimals)

function roundedText(value: string, placesMin: number): string {
  const [whole = '0', fraction = ''] = value.replace(/^-/, '').split('.')
  const zeros = fraction.length - fraction.replace(/^0+/, '').length
  const isSmall = whole === '0' && zeros < fraction.length
  const places = isSmall ? Math.max(placesMin, zeros + digitsMin) : placesMin
  const text = rounded(value, Math.min(fixedPointDecimals, places))
  const [left = '', right] = text.split('.')
  const grouped = left.replace(/\B(?=(\d{3})+(?!\d))/g, ',')
  return (right === undefined ? grouped : `${grouped}.${right}`).replace(/^-/, '\u2212')
}

/** The scales of large dollar amounts, such as the volume of a whole market. */
export const scales = [
  { word: 'bn', factor: 1_000_000_000n },
  { word: 'M', factor: 1_000_000n },
  { word: 'k', factor: 1_000n },
] as const

function scaledText(value: string): string {
  const size = value.replace(/^-/, '')
  const scale = scales.find(({ factor }) => toUnits(size, fixedPointDecimals) >= factor * fixedPointOne)
  return scale
    ? `${roundedText(dividedBy(value, scale.factor), 2)} ${scale.word} USD`
    : `${roundedText(value, 2)} USD`
}

/** A price has two places from one dollar on; below that it has four digits after the zeros. */
function priceText(value: string): string {
  const fraction = /^-?0\.(0*)[1-9]/.exec(value)
  return `${roundedText(value, fraction ? (fraction[1]?.length ?? 0) + 4 : 2)} USD`
}

const timeText = (iso: string): string | undefined => {
  const ms = Date.parse(iso)
  return Number.isNaN(ms) ? undefined : `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** Prints a value for a person, by its unit; returns undefined if the text is no value of that unit. */
export function printedValue({ value, unit }: { value: string; unit: Unit }): string | undefined {
  if (unit === 'text') return `"${plainName(value)}"`
  if (unit === 'word') return ownWord.test(value) ? value.replaceAll('_', ' ') : undefined
  if (unit === 'time') return timeText(value)
  if (!isDecimal(value)) return undefined
  switch (unit) {
    case 'usd':
      return `${roundedText(value, 2)} USD`
    case 'volume':
      return scaledText(value)
    case 'price':
      return priceText(value)
    case 'fraction':
      return `${roundedText(times(value, 100n), 2)} %`
    case 'hourly':
      return `${roundedText(times(value, 100n), 4)} % an hour`
    case 'index':
      return roundedText(value, 1)
    case 'ratio':
      return roundedText(value, 2)
    case 'days':
      return `${roundedText(value, value.includes('.') ? 1 : 0)} ${value === '1' ? 'day' : 'days'}`
    default:
      return roundedText(value, value.includes('.') ? 2 : 0)
  }
}

const namesMax = 64
/** Turns a name that a stranger wrote into plain words, without marks, markup or links. */
export function plainName(text: string): string {
  const name = text
    .normalize('NFKC')
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .replace(/[^\p{L}\p{N} .,'&/+-]/gu, ' ')
    .replace(/\/{2,}|\bwww\./gi, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, namesMax)
  return name === '' ? 'unnamed' : name
}
