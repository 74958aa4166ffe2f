import type { Account } from './account.ts'
import { toBase58 } from './base58.ts'
import { addressBytes, associatedTokenAddress, sha256, worldKeyPair } from './keys.ts'
import { systemProgram, token2022Program, tokenProgram } from './programs.ts'
import { accountBytes, type MintOptions, writeMint } from './token-layout.ts'

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
}

const key = (address: string): Buffer => Buffer.from(addressBytes(address))
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

const transferFee = (basisPoints: number, maximumFeeUnits: bigint) => {
  const points = Buffer.alloc(2)
  points.writeUInt16LE(basisPoints)
  const fee = Buffer.concat([u64(0n), u64(maximumFeeUnits), points])
  const authority = key(worldKey.address)
  return { type: 1, data: Buffer.concat([authority, authority, u64(0n), fee, fee]) }
}

const metadata = (mint: string, name: string, symbol: string) => [
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

const permanentDelegate = () => ({ type: 12, data: key(worldKey.address) })
const pyusd = '2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo'
/** The trap tokens exist only in this world, so their addresses derive from a label. */
const edgeCaseMint = (label: string): string => toBase58(sha256(`portico local world: token ${label}`))

export const worldTokens: readonly WorldToken[] = [
  {
    mint: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    symbol: 'USDC',
    name: 'USD Coin',
    decimals: 6,
    program: tokenProgram,
    freezable: true,
  },
  {
    mint: 'DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263',
    symbol: 'BONK',
    name: 'Bonk',
    decimals: 5,
    program: tokenProgram,
    fixedSupplyUnits: 10n ** 19n,
  },
  {
    mint: 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN',
    symbol: 'JUP',
    name: 'Jupiter',
    decimals: 6,
    program: tokenProgram,
    fixedSupplyUnits: 10n ** 18n,
  },
  {
    mint: pyusd,
    symbol: 'PYUSD',
    name: 'PayPal USD',
    decimals: 6,
    program: token2022Program,
    extensions: [transferFee(0, 0n), ...metadata(pyusd, 'PayPal USD', 'PYUSD')],
  },
  {
    mint: edgeCaseMint('frozen'),
    symbol: 'FRZ',
    name: 'Freezable Trap',
    decimals: 6,
    program: tokenProgram,
    freezable: true,
  },
  {
    mint: edgeCaseMint('seized'),
    symbol: 'SEIZE',
    name: 'Permanent Delegate Trap',
    decimals: 6,
    program: token2022Program,
    extensions: [
      permanentDelegate(),
      ...metadata(edgeCaseMint('seized'), 'Permanent Delegate Trap', 'SEIZE'),
    ],
  },
  {
    mint: edgeCaseMint('taxed'),
    symbol: 'TAXED',
    name: 'Transfer Fee Trap',
    decimals: 6,
    program: token2022Program,
    extensions: [
      transferFee(500, 10n ** 15n),
      ...metadata(edgeCaseMint('taxed'), 'Transfer Fee Trap', 'TAXED'),
    ],
  },
]

export const treasuryOf = ({ mint, program }: WorldToken): string =>
  associatedTokenAddress(worldKey.address, mint, program)

const worldLamports = 10n ** 18n
const rentLamports = 10n ** 8n

const tokenAccount = (mint: string, amountUnits: bigint): Uint8Array => {
  const data = Buffer.alloc(accountBytes)
  data.set(key(mint), 0)
  data.set(key(worldKey.address), 32)
  data.writeBigUInt64LE(amountUnits, 64)
  data[108] = 1
  return data
}

/** Places the world's tokens at their public addresses, for which no transaction could sign. */
export const seedTokens = (put: (address: string, account: Account) => void): void => {
  put(worldKey.address, {
    lamports: worldLamports,
    data: new Uint8Array(),
    owner: systemProgram,
    executable: false,
  })
  for (const token of worldTokens) {
    const { mint, decimals, program, fixedSupplyUnits, freezable, extensions } = token
    const data = writeMint(
      {
        mintAuthority: fixedSupplyUnits === undefined ? worldKey.address : null,
        freezeAuthority: freezable ? worldKey.address : null,
        supply: fixedSupplyUnits ?? 0n,
        decimals,
        ...(extensions ? { extensions } : {}),
      },
      addressBytes,
    )
    put(mint, { lamports: rentLamports, data, owner: program, executable: false })
    if (fixedSupplyUnits === undefined) continue
    const supplyUnits = tokenAccount(mint, fixedSupplyUnits)
    put(treasuryOf(token), { lamports: rentLamports, data: supplyUnits, owner: program, executable: false })
  }
}
