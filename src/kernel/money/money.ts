/** Arithmetic on amounts as decimal text and as bigint units. No function in this file converts to a float. */

export const usdDecimals = 6
/** USDC has six decimals on every chain. */
export const usdcDecimals = 6
export const nativeDecimals = 18
/** A lamport is the smallest unit of SOL. */
export const lamportDecimals = 9
/** Arithmetic on decimal text uses as many places as a decimal may have. */
export const fixedPointDecimals = 18
export const fixedPointOne = 10n ** BigInt(fixedPointDecimals)
/** The whole of an amount, in hundredths of a percent. */
export const fullBps = 10_000n

export const decimalPattern = '^-?(0|[1-9][0-9]{0,38})(\\.[0-9]{1,18})?$'
const decimal = new RegExp(decimalPattern)
const jsonNumber = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/

export const isDecimal = (text: string): boolean => decimal.test(text)

/** Returns the plain decimal form of a JSON number's source text, or undefined if it is not valid. */
export function decimalOfSource(source: string): string | undefined {
  const match = jsonNumber.exec(source)
  if (!match) return undefined
  const [, sign = '', whole = '0', fraction = '', exponent = '0'] = match
  const shift = Number(exponent)
  const digits = whole + fraction
  const point = whole.length + shift
  const left = point > 0 ? digits.slice(0, point).padEnd(point, '0') : '0'
  const right = point >= 0 ? digits.slice(point) : '0'.repeat(-point) + digits
  return canonicalDecimal(`${sign}${left}${right ? `.${right}` : ''}`)
}

/** Drops leading and trailing zeros; returns undefined if the text is not a valid decimal. */
export function canonicalDecimal(text: string): string | undefined {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)
  if (!match) return undefined
  const whole = match[2]!.replace(/^0+(?=\d)/, '')
  const fraction = (match[3] ?? '').replace(/0+$/, '')
  const sign = match[1] && (whole !== '0' || fraction) ? '-' : ''
  const clean = `${sign}${whole}${fraction ? `.${fraction}` : ''}`
  return decimal.test(clean) ? clean : undefined
}

export const decimalPlaces = (text: string): number => text.split('.')[1]?.length ?? 0

/**
 * Converts decimal text to units exactly: it throws a RangeError instead of rounding. Callers check the places
 * first and answer 422.
 */
export function toUnits(text: string, decimals: number): bigint {
  const clean = canonicalDecimal(text)
  if (clean === undefined) throw new RangeError(`not a decimal: ${text}`)
  const negative = clean.startsWith('-')
  const [whole = '0', fraction = ''] = (negative ? clean.slice(1) : clean).split('.')
  if (fraction.length > decimals) throw new RangeError(`more than ${decimals} decimals: ${text}`)
  const units = BigInt(whole + fraction.padEnd(decimals, '0'))
  return negative ? -units : units
}

export function fromUnits(units: bigint, decimals: number): string {
  const negative = units < 0n
  const digits = (negative ? -units : units).toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = decimals === 0 ? '' : digits.slice(-decimals).replace(/0+$/, '')
  return `${negative ? '-' : ''}${whole}${fraction ? `.${fraction}` : ''}`
}

type Rounding = 'down' | 'up'

export function mulDiv(a: bigint, b: bigint, c: bigint, rounding: Rounding = 'down'): bigint {
  const product = a * b
  const quotient = product / c
  if (rounding === 'down' || product % c === 0n) return quotient
  return product < 0n !== c < 0n ? quotient - 1n : quotient + 1n
}

export function rescale(units: bigint, from: number, to: number, rounding: Rounding = 'down'): bigint {
  return to >= from ? units * 10n ** BigInt(to - from) : mulDiv(units, 1n, 10n ** BigInt(from - to), rounding)
}

export function valueMicros(
  amountUnits: bigint,
  decimals: number,
  priceText: string,
  rounding: Rounding = 'down',
): bigint {
  const places = decimalPlaces(priceText)
  return rescale(amountUnits * toUnits(priceText, places), decimals + places, usdDecimals, rounding)
}

/** Returns the units, rounded down, that are worth this many micro-dollars at a decimal price. */
export const unitsWorth = (micros: bigint, decimals: number, priceText: string): bigint =>
  mulDiv(rescale(micros, usdDecimals, fixedPointDecimals), 10n ** BigInt(decimals), toFixedPoint(priceText))

export const toFixedPoint = (text: string): bigint => toUnits(text, fixedPointDecimals)
export const fromFixedPoint = (units: bigint): string => fromUnits(units, fixedPointDecimals)

export const addDecimals = (a: string, b: string): string => fromFixedPoint(toFixedPoint(a) + toFixedPoint(b))
export const subtractDecimals = (a: string, b: string): string =>
  fromFixedPoint(toFixedPoint(a) - toFixedPoint(b))

/** Converts dollars to whole micro-dollars and drops excess digits. */
export const toMicros = (usd: string): bigint => rescale(toFixedPoint(usd), fixedPointDecimals, usdDecimals)
