import { Fault } from '#kernel/contract/fault.ts'
import { decimalOfSource } from '#kernel/money/money.ts'

/**
 * Numbers of the venue: decimal text, or JSON numbers that were computed as floats. They become units of 6 decimals,
 * rounded to the nearest one, which leaves exact figures as they are.
 */

export type WireNumber = string | number

const places = 6
const dollar = 1_000_000n
/** 10^12 dollars or shares: a larger figure is none. */
const amountMax = 10n ** 18n

/** Returns the units, or undefined if the text is no number. */
export function unitsOf(value: WireNumber | null | undefined): bigint | undefined {
  if (value === null || value === undefined || value === '') return undefined
  const source = String(value)
  if (tinyNumber.test(source) && Math.abs(Number(source)) < 0.000_001) return roundedTiny(Number(source))
  // Floats have up to 17 places, and more than 18 are no decimal of the gateway.
  const plain = decimalOfSource(source.includes('e') || source.includes('E') ? source : shortened(source))
  if (plain === undefined) return undefined
  const isNegative = plain.startsWith('-')
  const [whole = '0', fraction = ''] = plain.replace('-', '').split('.')
  const digits = fraction.padEnd(places + 1, '0')
  const units = BigInt(whole + digits.slice(0, places)) + (digits.charCodeAt(places) >= 53 ? 1n : 0n)
  return isNegative ? -units : units
}

/** Floats below a micro have an exponent, and more places than a decimal of the gateway. */
const tinyNumber = /^-?\d+(\.\d+)?[eE]-\d+$/
const roundedTiny = (value: number): bigint => {
  if (Math.abs(value) < 0.000_000_5) return 0n
  return value < 0 ? -1n : 1n
}

const shortened = (source: string): string => source.replace(/(\.\d{18})\d+$/, '$1')

type Maybe = WireNumber | null | undefined

const within = (value: Maybe, max: bigint): bigint | undefined => {
  const units = unitsOf(value)
  return units === undefined || units < 0n || units > max ? undefined : units
}
/** Returns the micro-dollars of a price from 0 to 1, or undefined. */
export const priceOf = (value: Maybe): bigint | undefined => within(value, dollar)
/** Returns the units of dollars or shares, or undefined if the figure is negative or beyond any amount. */
export const amountOf = (value: Maybe): bigint | undefined => within(value, amountMax)
/** Returns the micro-dollars of a step that divides a dollar, or undefined. */
export function tickOf(value: Maybe): bigint | undefined {
  const units = within(value, dollar / 2n)
  return units === undefined || units === 0n || dollar % units !== 0n ? undefined : units
}

/** Returns a figure without which a reply has no meaning. */
export function required(units: bigint | undefined, what: string): bigint {
  if (units === undefined) throw new Fault('upstream_changed', `Polymarket named no ${what} that is one`)
  return units
}
export const requiredUnits = (value: Maybe, what: string): bigint => required(unitsOf(value), what)

/** Reads base units, which are whole. */
export const baseUnitsOf = (text: string): bigint => {
  if (!/^\d{1,78}$/.test(text))
    throw new Fault('upstream_changed', 'Polymarket named an amount that is no integer')
  return BigInt(text)
}

/** Reads a time in seconds, milliseconds or nanoseconds, as number or text, or in the form of ISO 8601. */
export function dateOf(value: WireNumber | null | undefined): Date | null {
  if (value === null || value === undefined || value === '') return null
  const number = typeof value === 'number' ? value : /^\d+$/.test(value) ? Number(value) : undefined
  const at = new Date(number === undefined ? value : millisecondsOf(number))
  // NaN fails both comparisons.
  return at.getTime() >= 0 && at.getTime() <= timeMax ? at : null
}
/** Years of five digits have no form in the interface. */
const timeMax = Date.UTC(9_999, 11, 31, 23, 59, 59, 999)

function millisecondsOf(number: number): number {
  if (number < 100_000_000_000) return number * 1_000
  return number < 100_000_000_000_000_000 ? number : Math.round(number / 1_000_000)
}
