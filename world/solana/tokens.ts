import type { Account } from './account.ts'
import { toBase58 } from './base58.ts'
import { addressBytes, associatedTokenAddress, sha256 } from './keys.ts'
import { launchedTokens } from './launched-tokens.ts'
import { systemProgram, token2022Program, tokenProgram } from './programs.ts'
import { key, metadata, transferFee, type WorldToken, worldKey } from './token-definition.ts'
import { accountBytes, writeMint } from './token-layout.ts'

const pyusd = '2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo'
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
  ...launchedTokens,
]

export const treasuryOf = ({ mint, program }: WorldToken): string =>
  associatedTokenAddress(worldKey.address, mint, program)

const worldLamports = 10n ** 18n
const rentLamports = 10n ** 8n

const tokenAccount = (mint: string, owner: Uint8Array, amountUnits: bigint): Uint8Array => {
  const data = Buffer.alloc(accountBytes)
  data.set(key(mint), 0)
  data.set(owner, 32)
  data.writeBigUInt64LE(amountUnits, 64)
  data[108] = 1
  return data
}

type Put = (address: string, account: Account) => void

/** Nine tenths of the supply, in equal parts; returns the rest. */
const putHolders = (put: Put, token: WorldToken, supplyUnits: bigint): bigint => {
  const { mint, program, holders = 0 } = token
  if (holders === 0) return supplyUnits
  const partUnits = (supplyUnits * 9n) / 10n / BigInt(holders)
  for (let index = 0; index < holders; index++) {
    const label = `portico local world: holder ${index} of ${mint}`
    const data = tokenAccount(mint, sha256(label), partUnits)
    put(toBase58(sha256(`${label}: account`)), {
      lamports: rentLamports,
      data,
      owner: program,
      executable: false,
    })
  }
  return supplyUnits - partUnits * BigInt(holders)
}

const putMint = (put: Put, token: WorldToken): void => {
  const { mint, decimals, program, fixedSupplyUnits, freezable, extensions, hasNoMintAuthority } = token
  const isMintable = fixedSupplyUnits === undefined && !hasNoMintAuthority
  const data = writeMint(
    {
      mintAuthority: isMintable ? worldKey.address : null,
      freezeAuthority: freezable ? worldKey.address : null,
      supply: fixedSupplyUnits ?? 0n,
      decimals,
      ...(extensions ? { extensions } : {}),
    },
    addressBytes,
  )
  put(mint, { lamports: rentLamports, data, owner: program, executable: false })
  if (fixedSupplyUnits === undefined) return
  const held = tokenAccount(mint, key(worldKey.address), putHolders(put, token, fixedSupplyUnits))
  put(treasuryOf(token), { lamports: rentLamports, data: held, owner: program, executable: false })
}

/** Places the world's tokens at their public addresses, for which no transaction could sign. */
export const seedTokens = (put: Put): void => {
  put(worldKey.address, {
    lamports: worldLamports,
    data: new Uint8Array(),
    owner: systemProgram,
    executable: false,
  })
  for (const token of worldTokens) putMint(put, token)
}
