import { base58 } from './base58.ts'
import type { LookupTable } from './message.ts'
import { lookupTableProgram, tokenPrograms } from './program-ids.ts'
import type { Account } from './wire.ts'

const tableHeaderBytes = 56
const initialisedTable = 1
const activeSlot = 2n ** 64n - 1n
const addressesMax = 256

/** Decodes a lookup table; returns undefined if the account is no table, or one that is being closed. */
export function lookupTableOf(address: string, { owner, data }: Account): LookupTable | undefined {
  if (owner !== lookupTableProgram || data.length < tableHeaderBytes) return undefined
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  if (view.getUint32(0, true) !== initialisedTable || view.getBigUint64(4, true) !== activeSlot)
    return undefined
  const count = Math.min(addressesMax, Math.floor((data.length - tableHeaderBytes) / 32))
  const addresses = Array.from({ length: count }, (_, at) =>
    base58(data.subarray(tableHeaderBytes + at * 32, tableHeaderBytes + (at + 1) * 32)),
  )
  return { address, addresses }
}

/** The length of a token account; its extensions follow these bytes. */
const tokenAccountBytes = 165

export type TokenAccount = { mint: string; owner: string; amountUnits: bigint }

/** Decodes a token account; returns undefined if the account holds no tokens. */
export function tokenAccountIn({ owner, data }: Account): TokenAccount | undefined {
  const isToken = tokenPrograms.some((program) => program === owner)
  if (!isToken || data.length < tokenAccountBytes) return undefined
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  return {
    mint: base58(data.subarray(0, 32)),
    owner: base58(data.subarray(32, 64)),
    amountUnits: view.getBigUint64(64, true),
  }
}
