import type { Account } from './account.ts'
import { toBase58 } from './base58.ts'
import { token2022Program, tokenProgram } from './programs.ts'

export const mintBytes = 82
export const accountBytes = 165
const multisigBytes = 355
const accountType = { mint: 1, account: 2 }

export type Kind = 'mint' | 'account'

/** Detected by owner program and account type: Token-2022 accounts with extensions have any length above 165. */
export const tokenKind = ({ owner, data }: Account): Kind | undefined => {
  if (owner !== tokenProgram && owner !== token2022Program) return undefined
  if (data.length === mintBytes) return data[45] === 1 ? 'mint' : undefined
  if (data.length === accountBytes) return data[108] === 0 ? undefined : 'account'
  if (owner === tokenProgram || data.length < accountBytes || data.length === multisigBytes) return undefined
  if (data[accountBytes] === accountType.mint) return data[45] === 1 ? 'mint' : undefined
  return data[accountBytes] === accountType.account && data[108] !== 0 ? 'account' : undefined
}

const view = (data: Uint8Array): DataView => new DataView(data.buffer, data.byteOffset, data.byteLength)
export const u64At = (data: Uint8Array, at: number): bigint => view(data).getBigUint64(at, true)
export const u32At = (data: Uint8Array, at: number): number => view(data).getUint32(at, true)
export const u16At = (data: Uint8Array, at: number): number => view(data).getUint16(at, true)
export const keyAt = (data: Uint8Array, at: number): string => toBase58(data.subarray(at, at + 32))
const optionalKeyAt = (data: Uint8Array, at: number): string | null =>
  u32At(data, at) === 1 ? keyAt(data, at + 4) : null

export const readMint = (data: Uint8Array) => ({
  mintAuthority: optionalKeyAt(data, 0),
  supply: u64At(data, 36),
  decimals: data[44] as number,
  freezeAuthority: optionalKeyAt(data, 46),
})

const states = ['uninitialized', 'initialized', 'frozen'] as const

export const readTokenAccount = (data: Uint8Array) => ({
  mint: keyAt(data, 0),
  owner: keyAt(data, 32),
  amount: u64At(data, 64),
  delegate: optionalKeyAt(data, 72),
  state: states[data[108] as number] ?? 'uninitialized',
  rentExemptReserve: u32At(data, 109) === 1 ? u64At(data, 113) : null,
  delegatedAmount: u64At(data, 121),
  closeAuthority: optionalKeyAt(data, 129),
})

/** The `tokenAmount` shape; `uiAmount` is a float because the protocol defines it so; not for arithmetic. */
export const uiAmount = (amount: bigint, decimals: number) => {
  const digits = amount.toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  const uiAmountString = fraction === '' ? whole : `${whole}.${fraction}`
  return { amount: amount.toString(), decimals, uiAmount: Number(uiAmountString), uiAmountString }
}

export type MintOptions = {
  mintAuthority: string | null
  freezeAuthority: string | null
  supply: bigint
  decimals: number
  extensions?: { type: number; data: Uint8Array }[]
}
type KeyBytes = (address: string) => Uint8Array

/** Writes an initialised mint, padded and tagged as Token-2022 requires when there are extensions. */
export const writeMint = (options: MintOptions, keyBytes: KeyBytes): Uint8Array => {
  const base = Buffer.alloc(mintBytes)
  const putKey = (address: string | null, at: number): void => {
    if (address === null) return
    base.writeUInt32LE(1, at)
    base.set(keyBytes(address), at + 4)
  }
  putKey(options.mintAuthority, 0)
  base.writeBigUInt64LE(options.supply, 36)
  base[44] = options.decimals
  base[45] = 1
  putKey(options.freezeAuthority, 46)
  if (options.extensions === undefined) return base
  const entries = options.extensions.map(({ type, data }) => {
    const entry = Buffer.alloc(4 + data.length)
    entry.writeUInt16LE(type, 0)
    entry.writeUInt16LE(data.length, 2)
    entry.set(data, 4)
    return entry
  })
  return Buffer.concat([
    base,
    Buffer.alloc(accountBytes - mintBytes),
    Uint8Array.of(accountType.mint),
    ...entries,
  ])
}
