import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'

/** Fields of an untrusted answer, each read within its bounds. */

const uint256Max = (1n << 256n) - 1n
const textMax = 128

export type Fields = Record<string, unknown>
export const providerName = 'lifi'

export const changed = (what: string): Fault =>
  new Fault('upstream_changed', `LI.FI sent ${what}`, { extras: { upstream: providerName } })

export function fieldsOf(value: unknown, what: string): Fields {
  if (!isRecord(value)) throw changed(`no ${what}`)
  return value
}

function inRange(units: bigint, what: string): bigint {
  if (units > uint256Max) throw changed(`a number out of range as ${what}`)
  return units
}

export function unitsOf(value: unknown, what: string): bigint {
  if (typeof value !== 'string' || !/^\d{1,78}$/.test(value)) throw changed(`no whole number as ${what}`)
  return inRange(BigInt(value), what)
}

/** Values and gas of a transaction are hexadecimal. */
export function quantityOf(value: unknown, what: string): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value))
    throw changed(`no quantity as ${what}`)
  return inRange(BigInt(value), what)
}

export const isAddress = (value: unknown): value is string =>
  typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value)

export function addressOf(value: unknown, what: string): string {
  if (!isAddress(value)) throw changed(`no address as ${what}`)
  return value
}

export function hashOf(value: unknown, what: string): string {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(value)) throw changed(`no hash as ${what}`)
  return value.toLowerCase()
}

export function bytesOf(value: unknown, what: string, bytesMax: number): string {
  if (typeof value !== 'string' || !/^0x([0-9a-fA-F]{2})*$/.test(value)) throw changed(`no bytes as ${what}`)
  if (value.length > bytesMax * 2 + 2) throw changed(`too many bytes as ${what}`)
  return value
}

export const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= textMax ? value : null
