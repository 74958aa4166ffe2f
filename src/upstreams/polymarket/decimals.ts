import { Fault } from '#kernel/contract/fault.ts'
import { decimalOfSource } from '#kernel/money/money.ts'

/**
 * Numbers of the venue: decimal text, or JSON numbers that were computed as floats. They become units of 6 decimals,
 * rounded to the nearest one, which leaves exact figures as they are.
 */

export type WireNumber = string | number

const places = 6

/** Returns the units, or undefined if the text is no number. */
export function unitsOf(value: WireNumber | null | undefined): bigint | undefined {
  if (value === null || value === undefined || value === '') return undefined
  const source = String(value)
  // Floats have up to 17 places, and more than 18 are no decimal of the gateway.
  const plain = decimalOfSource(source.includes('e') || source.includes('E') ? source : shortened(source))
  if (plain === undefined) return undefined
  const isNegative = plain.startsWith('-')
  const [whole = '0', fraction = ''] = plain.replace('-', '').split('.')
  const digits = fraction.padEnd(places + 1, '0')
  const units = BigInt(whole + digits.slice(0, places)) + (digits.charCodeAt(places) >= 53 ? 1n : 0n)
  return isNegative ? -units : units
}

const shortened = (source: string): string => source.replace(/(\.\d{18})\d+$/, '$1')

/** Returns the units of a figure without which a reply has no meaning. */
export function requiredUnits(value: WireNumber | null | undefined, what: string): bigint {
  const units = unitsOf(value)
  if (units === undefined) throw new Fault('upstream_changed', `Polymarket named no ${what} that is a number`)
  return units
}

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
  return Number.isNaN(at.getTime()) ? null : at
}

function millisecondsOf(number: number): number {
  if (number < 100_000_000_000) return number * 1_000
  return number < 100_000_000_000_000_000 ? number : Math.round(number / 1_000_000)
}
