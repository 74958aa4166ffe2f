import { fromUnits, isDecimal, mulDiv, rescale, toUnits } from './money.ts'

/** How a value of an operation is printed. Arithmetic is exact, on decimal text; `undefined` is an unknown value. */
export type Format =
  | 'usd'
  | 'price'
  | 'level'
  | 'size'
  | 'amount'
  | 'percent'
  | 'fraction'
  | 'hourly'
  | 'bps'
  | 'count'
  | 'text'
  | 'kind'
  | 'words'
  | 'time'
  | 'age'
  | 'days'
const one = 10n ** 18n

/** Rounds a decimal to `places`; a half is rounded away from zero. */
export function rounded(value: string, places: number): string {
  const units = toUnits(value, 18)
  const step = 10n ** BigInt(18 - places)
  const half = step / 2n
  const whole = units < 0n ? -((-units + half) / step) : (units + half) / step
  const text = fromUnits(whole, places)
  if (places === 0) return text
  const [left = '0', right = ''] = text.split('.')
  return `${left}.${right.padEnd(places, '0')}`
}

const grouped = (text: string): string => {
  const [left = '', right] = text.split('.')
  const whole = left.replace(/\B(?=(\d{3})+(?!\d))/g, ',')
  return right === undefined ? whole : `${whole}.${right}`
}
const signed = (text: string): string => text.replace(/^-/, '\u2212')

/**
 * Prints a price with two places from one dollar on, and with four digits after the leading zeros below a dollar.
 */
function priceText(value: string): string {
  const size = value.replace(/^-/, '')
  if (!size.startsWith('0')) return rounded(value, 2)
  const fraction = size.split('.')[1] ?? ''
  const zeros = fraction.length - fraction.replace(/^0+/, '').length
  if (zeros === fraction.length) return rounded(value, 2)
  return rounded(value, Math.min(18, Math.max(2, zeros + 4)))
}

/**
 * Prints an amount with six significant digits and at least two places, as far as it has them, rounded towards zero, so
 * that nobody reads more than there is.
 */
function amountText(value: string): string {
  const [left = '0', right = ''] = value.split('.')
  const whole = left.replace('-', '')
  const zeros = right.length - right.replace(/^0+/, '').length
  const places = whole === '0' ? zeros + 6 : Math.max(2, 6 - whole.length)
  const shown = right.slice(0, places).replace(/0+$/, '')
  return shown === '' ? left : `${left}.${shown}`
}

const percent = (fraction: string, places: number): string =>
  rounded(fromUnits(toUnits(fraction, 18) * 100n, 18), places)

export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}

/**
 * Returns a value as decimal text, or undefined for any other value; a JSON number gets the digits of its shortest
 * form.
 */
const decimalOf = (value: unknown): string | undefined => {
  const text = typeof value === 'number' && Number.isFinite(value) ? plainNumber(value) : value
  return typeof text === 'string' && isDecimal(text) ? text : undefined
}
const plainNumber = (value: number): string => {
  const text = String(value)
  return text.includes('e') ? rounded(value.toFixed(18), 18).replace(/0+$/, '').replace(/\.$/, '') : text
}

const words = (value: unknown): string | undefined => {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  // Token names are written by strangers: control and direction marks are removed, and the length is limited.
  const text = String(value)
    .normalize('NFKC')
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .slice(0, 200)
  return text === '' ? undefined : text
}

const capital = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** Prints a value; a level at which a position is liquidated may be none. */
export function printed(value: unknown, format: Format): string | undefined {
  if (format === 'text' || format === 'time') return words(value)
  if (format === 'words') return words(value)?.replaceAll('_', ' ')
  if (format === 'kind') return capital(printed(value, 'words'))
  if (format === 'level' && value === null) return 'no liquidation price'
  const decimal = decimalOf(value)
  if (decimal === undefined) return undefined
  switch (format) {
    case 'usd':
      return `${signed(grouped(rounded(decimal, 2)))} USD`
    case 'price':
      return `${signed(grouped(priceText(decimal)))} USD`
    case 'level':
      return `liquidation at ${signed(grouped(priceText(decimal)))} USD`
    case 'size':
      return signed(grouped(decimal))
    case 'amount':
      return signed(grouped(amountText(decimal)))
    case 'percent':
      return `${signed(rounded(decimal, 2))} %`
    case 'fraction':
      return `${signed(percent(decimal, 2))} %`
    case 'hourly':
      return `${signed(percent(decimal, 4))} % an hour`
    case 'bps':
      return `${signed(rounded(fromUnits(mulDiv(toUnits(decimal, 18), 1n, 100n), 18), 2))} %`
    case 'count':
      return grouped(decimal)
    default:
      return undefined
  }
}

export const figureFormulas = {
  /** Returns by what fraction the first value is above the second. */
  change: (now: string, before: string): string | undefined => {
    const base = toUnits(before, 18)
    return base <= 0n ? undefined : fromUnits(mulDiv(toUnits(now, 18) - base, one, base), 18)
  },
  ratio: (part: string, whole: string): string | undefined => {
    const base = toUnits(whole, 18)
    return base <= 0n ? undefined : fromUnits(mulDiv(toUnits(part, 18), one, base), 18)
  },
  product: (a: string, b: string): string | undefined =>
    fromUnits(rescale(toUnits(a, 18) * toUnits(b, 18), 36, 18), 18),
  difference: (a: string, b: string): string | undefined => fromUnits(toUnits(a, 18) - toUnits(b, 18), 18),
} as const
export const summed = (values: readonly unknown[]): string | undefined => {
  const known = values.flatMap((value) => decimalOf(value) ?? [])
  return known.length === 0
    ? undefined
    : fromUnits(
        known.reduce((sum, value) => sum + toUnits(value, 18), 0n),
        18,
      )
}
export type FigureFormula = keyof typeof figureFormulas

export function computed(name: FigureFormula, first: unknown, second: unknown): string | undefined {
  const a = decimalOf(first)
  const b = decimalOf(second)
  return a === undefined || b === undefined ? undefined : figureFormulas[name](a, b)
}
