import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'

/** Fields of an untrusted answer, each read within its bounds. */

const unitsPattern = /^\d{1,78}$/
const uint256Max = (1n << 256n) - 1n
const evmAddress = /^0x[0-9a-fA-F]{40}$/
const solanaAddress = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/
const requestIdPattern = /^0x[0-9a-fA-F]{64}$/
const textMax = 128

export type Fields = Record<string, unknown>

export const changed = (what: string): Fault =>
  new Fault('upstream_changed', `The solver sent ${what}`, { extras: { upstream: 'relay' } })

export function fieldsOf(value: unknown, what: string): Fields {
  if (!isRecord(value)) throw changed(`no ${what}`)
  return value
}

export function listOf(value: unknown, what: string, most: number): unknown[] {
  if (!Array.isArray(value)) throw changed(`no list of ${what}`)
  if (value.length > most) throw changed(`more than ${most} ${what}`)
  return value
}

export const isUnits = (value: unknown): value is string =>
  typeof value === 'string' && unitsPattern.test(value)

export function unitsOf(value: unknown, what: string): bigint {
  if (!isUnits(value)) throw changed(`no whole number as ${what}`)
  const units = BigInt(value)
  if (units > uint256Max) throw changed(`a number out of range as ${what}`)
  return units
}

type Family = 'evm' | 'solana'

export const isAddress = (value: unknown, family: Family): value is string =>
  typeof value === 'string' && (family === 'evm' ? evmAddress : solanaAddress).test(value)

export function addressOf(value: unknown, family: Family, what: string): string {
  if (!isAddress(value, family)) throw changed(`no address as ${what}`)
  return value
}

export function requestIdOf(value: unknown): string {
  if (typeof value !== 'string' || !requestIdPattern.test(value)) throw changed('no id of the request')
  return value.toLowerCase()
}

/** Reads hexadecimal text of whole bytes, with the prefix that is given. */
export function hexOf(
  value: unknown,
  what: string,
  { bytesMax, prefix }: { bytesMax: number; prefix: string },
) {
  const digits =
    typeof value === 'string' && value.startsWith(prefix) ? value.slice(prefix.length) : undefined
  if (digits === undefined || !/^([0-9a-fA-F]{2})*$/.test(digits)) throw changed(`no bytes as ${what}`)
  if (digits.length > bytesMax * 2) throw changed(`too many bytes as ${what}`)
  return value as string
}

export const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= textMax ? value : null

/** Converts a percentage in decimal text to hundredths of a percent, rounded towards zero; 0 if there is none. */
export function bpsOf(percent: unknown): number {
  const match = typeof percent === 'string' ? /^(-?)(\d{1,6})(?:\.(\d{1,2})\d*)?$/.exec(percent) : null
  if (!match) return 0
  const [, sign, whole = '0', fraction = ''] = match
  const bps = Number(whole) * 100 + Number(fraction.padEnd(2, '0') || '0')
  return sign === '-' ? -bps : bps
}
