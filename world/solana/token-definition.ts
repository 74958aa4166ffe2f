import { toBase58 } from './base58.ts'
import { addressBytes, sha256, worldKeyPair } from './keys.ts'
import type { MintOptions } from './token-layout.ts'

/** Pays fees, holds mint and freeze authority, and owns the supply of tokens without a mint authority. World-only. */
export const worldKey = worldKeyPair('solana authority')

export type WorldToken = {
  mint: string
  symbol: string
  name: string
  decimals: number
  program: string
  /** Tokens with renounced authority are minted in full at the start and granted from the world's own account. */
  fixedSupplyUnits?: bigint
  extensions?: MintOptions['extensions']
  freezable?: boolean
  /** Nobody can mint more, although the supply is zero. */
  hasNoMintAuthority?: boolean
  /** Holders beside the world's own account, each with an equal part of nine tenths of the fixed supply. */
  holders?: number
  /** Exists to be judged by a check of tokens, and is not traded. */
  isLaunched?: boolean
}

export const key = (address: string): Buffer => Buffer.from(addressBytes(address))
const u64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}
const text = (value: string): Buffer => {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(bytes.length)
  return Buffer.concat([length, bytes])
}

export const transferFee = (basisPoints: number, maximumFeeUnits: bigint) => {
  const points = Buffer.alloc(2)
  points.writeUInt16LE(basisPoints)
  const fee = Buffer.concat([u64(0n), u64(maximumFeeUnits), points])
  const authority = key(worldKey.address)
  return { type: 1, data: Buffer.concat([authority, authority, u64(0n), fee, fee]) }
}

export const metadata = (mint: string, name: string, symbol: string) => [
  { type: 18, data: Buffer.concat([key(worldKey.address), key(mint)]) },
  {
    type: 19,
    data: Buffer.concat([
      key(worldKey.address),
      key(mint),
      text(name),
      text(symbol),
      text(''),
      Buffer.alloc(4),
    ]),
  },
]

/** Tokens that exist only in this world have addresses that derive from a label. */
export const edgeCaseMint = (label: string): string => toBase58(sha256(`portico local world: token ${label}`))
