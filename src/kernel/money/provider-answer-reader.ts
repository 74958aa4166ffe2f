import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { fullBps } from './money.ts'
import type { RouteRequest } from './swap-provider.ts'

/** Reads the fields of a provider's untrusted answer, each within its bounds. */

export type Fields = Record<string, unknown>
type Family = 'evm' | 'solana'

const uint256Max = (1n << 256n) - 1n
const textMax = 128
const etaSecondsMax = 86_400
/** By how many units a quoted minimum may be below the computed one, because providers round in their own way. */
const roundingUnits = 1n
const addressForms = { evm: /^0x[0-9a-fA-F]{40}$/, solana: /^[1-9A-HJ-NP-Za-km-z]{32,44}$/ }

export const isUnits = (value: unknown): value is string =>
  typeof value === 'string' && /^\d{1,78}$/.test(value)

export const isHash = (value: unknown): value is string =>
  typeof value === 'string' && /^0x[0-9a-fA-F]{64}$/.test(value)

export const isAddress = (value: unknown, family: Family = 'evm'): value is string =>
  typeof value === 'string' && addressForms[family].test(value)

export const parseText = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= textMax ? value : null

export const secondsOf = (value: unknown): number =>
  typeof value === 'number' && value >= 0 && value <= etaSecondsMax ? Math.ceil(value) : 0

type ProviderName = { name: string; title: string }

export function createAnswerReader({ name: upstream, title }: ProviderName) {
  const changed = (what: string): Fault =>
    new Fault('upstream_changed', `${title} sent ${what}`, { extras: { upstream } })

  const integerOf = (digits: string, what: string): bigint => {
    const units = BigInt(digits)
    if (units > uint256Max) throw changed(`a number out of range as ${what}`)
    return units
  }

  return {
    changed,
    away: (why: string, retryAfterMs?: number) =>
      new Fault('unavailable', `${title} ${why}; try again later`, {
        extras: {
          upstream,
          ...(retryAfterMs !== undefined && { retry_after: Math.ceil(retryAfterMs / 1_000) }),
        },
      }),
    fieldsOf(value: unknown, what: string): Fields {
      if (!isRecord(value)) throw changed(`no ${what}`)
      return value
    },
    listOf(value: unknown, what: string, lengthMax: number): unknown[] {
      if (!Array.isArray(value)) throw changed(`no list of ${what}`)
      if (value.length > lengthMax) throw changed(`more than ${lengthMax} ${what}`)
      return value
    },
    unitsOf(value: unknown, what: string): bigint {
      if (!isUnits(value)) throw changed(`no whole number as ${what}`)
      return integerOf(value, what)
    },
    /** Reads a hexadecimal quantity, the form in which providers send the value and the gas of a transaction. */
    quantityOf(value: unknown, what: string): bigint {
      if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value))
        throw changed(`no quantity as ${what}`)
      return integerOf(value, what)
    },
    addressOf(value: unknown, what: string, family?: Family): string {
      if (!isAddress(value, family)) throw changed(`no address as ${what}`)
      return value
    },
    hashOf(value: unknown, what: string): string {
      if (!isHash(value)) throw changed(`no hash as ${what}`)
      return value.toLowerCase()
    },
    /** Reads hexadecimal text of whole bytes, with the prefix that is given. */
    hexOf(value: unknown, what: string, { bytesMax, prefix }: { bytesMax: number; prefix: string }): string {
      const digits =
        typeof value === 'string' && value.startsWith(prefix) ? value.slice(prefix.length) : undefined
      if (digits === undefined || !/^([0-9a-fA-F]{2})*$/.test(digits)) throw changed(`no bytes as ${what}`)
      if (digits.length > bytesMax * 2) throw changed(`too many bytes as ${what}`)
      return value as string
    },
    /**
     * Refuses a minimum below the requested slippage, which would let the filler of the order take the difference.
     */
    assertMinimum({ slippageBps }: RouteRequest, outUnits: bigint, minimumUnits: bigint): void {
      const least = (outUnits * (fullBps - BigInt(slippageBps))) / fullBps
      if (minimumUnits <= 0n || minimumUnits < least - roundingUnits)
        throw changed('a minimum below the slippage')
      if (minimumUnits > outUnits) throw changed('a minimum above its output')
    },
  }
}
