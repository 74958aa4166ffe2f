/**
 * Money and prices are integers of 1e-8, sizes are lots of 10^-sizeDecimals. Prices and sizes fit a number, their
 * product does not, so money is a bigint.
 */
export const decimals = 8
export const one = 100_000_000

const powers = Array.from({ length: 19 }, (_, i) => 10n ** BigInt(i))
export const power = (exponent: number): bigint => powers[exponent] as bigint

const shape = /^(-?)([0-9]*)(?:\.([0-9]*))?$/

/** The canonical text that is hashed: no leading or trailing zeros, no negative zero. Other text is unchanged. */
export const canonicalDecimal = (text: string): string => {
  const match = shape.exec(text)
  if (!match) return text
  const [, sign, whole = '', fraction = ''] = match
  if (whole === '' && fraction === '') return text
  const integer = whole.replace(/^0+/, '') || '0'
  const digits = fraction.replace(/0+$/, '')
  const body = digits === '' ? integer : `${integer}.${digits}`
  return sign === '-' && body !== '0' ? `-${body}` : body
}

/** Exact, or undefined when the text is no decimal or has too many decimal places. */
export const parseUnits = (text: string, places: number): bigint | undefined => {
  const match = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(canonicalDecimal(text))
  if (!match) return undefined
  const [, sign, whole = '', fraction = ''] = match
  if (fraction.length > places || whole.length > 15) return undefined
  const units = BigInt(whole) * power(places) + BigInt(fraction.padEnd(places, '0') || '0')
  return sign === '-' ? -units : units
}

/** Upstream prints floats: a whole number carries `.0`. */
export const unitsText = (units: bigint, places = decimals): string => {
  const negative = units < 0n
  const digits = (negative ? -units : units).toString().padStart(places + 1, '0')
  const whole = digits.slice(0, digits.length - places)
  const fraction = digits.slice(digits.length - places).replace(/0+$/, '') || '0'
  return `${negative ? '-' : ''}${whole}.${fraction}`
}

export const priceText = (price: number): string => unitsText(BigInt(price))

export const sizeText = (lots: number, sizeDecimals: number): string => unitsText(BigInt(lots), sizeDecimals)

/** Rates are integers of 1e-10; upstream prints them without padding `.0`. */
export const rateText = (rate: bigint): string => unitsText(rate, 10)

/** price * size in money. Exact, because a valid price never has more decimal places than the size leaves free. */
export const notional = (price: number, lots: number, sizeDecimals: number): bigint =>
  (BigInt(price) * BigInt(lots)) / power(sizeDecimals)

/** Perpetual money moves in whole micro-dollars, as upstream prints it. */
const micro = 100n

export const roundUpMicro = (units: bigint): bigint => ((units + micro - 1n) / micro) * micro

export const roundMicro = (units: bigint): bigint =>
  ((units + (units < 0n ? -micro / 2n : micro / 2n)) / micro) * micro

export const floorMicro = (units: bigint): bigint => (units / micro) * micro

export const absolute = (value: bigint): bigint => (value < 0n ? -value : value)

export const maximum = (a: bigint, b: bigint): bigint => (a > b ? a : b)
export const minimum = (a: bigint, b: bigint): bigint => (a < b ? a : b)
