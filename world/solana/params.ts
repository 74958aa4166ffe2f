import { fromBase58 } from './base58.ts'
import type { Commitment } from './chain.ts'
import { invalidParams } from './rpc-error.ts'

/** The positional parameters of one call, with the error texts of a node. */
export type Params = readonly unknown[]
export type Config = Readonly<Record<string, unknown>>

const kindOf = (value: unknown): string =>
  value === null || value === undefined ? 'null' : Array.isArray(value) ? 'sequence' : typeof value

export const textAt = (params: Params, at: number): string => {
  const value = params[at]
  if (typeof value === 'string') return value
  if (at >= params.length)
    throw invalidParams(`invalid length ${params.length}, expected at least ${at + 1} elements`)
  throw invalidParams(`invalid type: ${kindOf(value)}, expected a string`)
}

const base58Of = (text: unknown, bytes: number): string => {
  if (typeof text !== 'string') throw invalidParams(`invalid type: ${kindOf(text)}, expected a string`)
  /** Longer text cannot be a key; rejected before the quadratic decoding. */
  const decoded = text.length > 100 ? undefined : fromBase58(text)
  if (decoded === undefined) throw invalidParams('Invalid param: Invalid')
  if (decoded.length !== bytes) throw invalidParams('Invalid param: WrongSize')
  return text
}

export const addressOf = (text: unknown): string => base58Of(text, 32)
export const signatureOf = (text: unknown): string => base58Of(text, 64)
export const addressAt = (params: Params, at: number): string => addressOf(textAt(params, at))
export const signatureAt = (params: Params, at: number): string => signatureOf(textAt(params, at))

export const listAt = (params: Params, at: number, countMax: number): readonly unknown[] => {
  const value = params[at]
  if (!Array.isArray(value)) throw invalidParams(`invalid type: ${kindOf(value)}, expected a sequence`)
  if (value.length > countMax) throw invalidParams(`Too many inputs provided; max ${countMax}`)
  return value
}

export const recordOf = (value: unknown): Config => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Config
  throw invalidParams(`invalid type: ${kindOf(value)}, expected a map`)
}

export const configAt = (params: Params, at: number): Config =>
  params[at] === undefined || params[at] === null ? {} : recordOf(params[at])

/** A u64 as a number or, beyond 2^53, as bigint. */
export const u64Of = (value: unknown, name: string): bigint => {
  const read =
    typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value)) ? BigInt(value) : -1n
  if (read < 0n || read >= 2n ** 64n) throw invalidParams(`invalid value for ${name}, expected u64`)
  return read
}

export const countOf = (value: unknown, name: string, max: number): number => {
  const read = u64Of(value, name)
  if (read > BigInt(max)) throw invalidParams(`Invalid ${name}; max ${max}`)
  return Number(read)
}

const commitments: Record<string, Commitment> = {
  processed: 'processed',
  recent: 'processed',
  confirmed: 'confirmed',
  single: 'confirmed',
  finalized: 'finalized',
  root: 'finalized',
  max: 'finalized',
}

/** A node answers at `finalized` by default. */
export const commitmentOf = ({ commitment }: Config): Commitment => {
  if (commitment === undefined || commitment === null) return 'finalized'
  const known = typeof commitment === 'string' ? commitments[commitment] : undefined
  if (known === undefined)
    throw invalidParams(`unknown variant \`${String(commitment)}\`, expected a commitment`)
  return known
}

export const flagOf = (config: Config, name: string): boolean => {
  const value = config[name]
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw invalidParams(`invalid type: ${kindOf(value)}, expected a boolean`)
  return value
}

export const encodingOf = <T extends string>(config: Config, allowed: readonly T[], fallback: T): T => {
  const value = config.encoding ?? fallback
  if (allowed.includes(value as T)) return value as T
  throw invalidParams(`unknown variant \`${String(value)}\`, expected one of ${allowed.join(', ')}`)
}

/** Bytes in the encoding that the call names; sendTransaction defaults to base58 for historical reasons. */
export const bytesOf = (text: string, encoding: 'base58' | 'base64'): Uint8Array => {
  if (encoding === 'base64') {
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw invalidParams('invalid base64 encoding')
    return Buffer.from(text, 'base64')
  }
  const bytes = text.length > 1_700 ? undefined : fromBase58(text)
  if (bytes === undefined) throw invalidParams('invalid base58 encoding')
  return bytes
}
