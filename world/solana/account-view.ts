import { zstdCompressSync } from 'node:zlib'
import type { Account, AccountLookup } from './account.ts'
import { toBase58 } from './base58.ts'
import { parsedTable } from './lookup-table.ts'
import { type Config, countOf, encodingOf, recordOf } from './params.ts'
import { token2022Program } from './programs.ts'
import { RpcError } from './rpc-error.ts'
import { readExtensions } from './token-extensions.ts'
import { readMint, readTokenAccount, tokenKind, uiAmount } from './token-layout.ts'

const encodings = ['binary', 'base58', 'base64', 'base64+zstd', 'jsonParsed'] as const
export type Encoding = (typeof encodings)[number]
export type ViewOptions = { encoding: Encoding; slice: { offset: number; length: number } | undefined }

const base58BytesMax = 128
const sliceMax = 10_485_760
const neverRentBilled = 18_446_744_073_709_551_615n

export const readViewOptions = (config: Config, fallback: Encoding = 'binary'): ViewOptions => {
  const encoding = encodingOf(config, encodings, fallback)
  if (config.dataSlice === undefined || config.dataSlice === null) return { encoding, slice: undefined }
  const { offset, length } = recordOf(config.dataSlice)
  return {
    encoding,
    slice: { offset: countOf(offset, 'offset', sliceMax), length: countOf(length, 'length', sliceMax) },
  }
}

const optional = <T>(name: string, value: T | null): Record<string, T> =>
  value === null ? {} : { [name]: value }

const parsedMint = (account: Account) => {
  const { decimals, freezeAuthority, mintAuthority, supply } = readMint(account.data)
  return { decimals, freezeAuthority, isInitialized: true, mintAuthority, supply: supply.toString() }
}

const parsedTokenAccount = (account: Account, lookup: AccountLookup) => {
  const read = readTokenAccount(account.data)
  const mint = lookup(read.mint)
  if (mint === undefined || tokenKind(mint) !== 'mint') return undefined
  const { decimals } = readMint(mint.data)
  return {
    isNative: read.rentExemptReserve !== null,
    mint: read.mint,
    owner: read.owner,
    state: read.state,
    tokenAmount: uiAmount(read.amount, decimals),
    ...optional('delegate', read.delegate),
    ...optional('delegatedAmount', read.delegate === null ? null : uiAmount(read.delegatedAmount, decimals)),
    ...optional(
      'rentExemptReserve',
      read.rentExemptReserve === null ? null : uiAmount(read.rentExemptReserve, decimals),
    ),
    ...optional('closeAuthority', read.closeAuthority),
  }
}

const parsed = (account: Account, lookup: AccountLookup) => {
  const kind = tokenKind(account)
  if (kind === undefined) return undefined
  const info = kind === 'mint' ? parsedMint(account) : parsedTokenAccount(account, lookup)
  if (info === undefined) return undefined
  const is2022 = account.owner === token2022Program
  const extensions = is2022 ? readExtensions(account.data) : []
  return {
    parsed: { info: extensions.length === 0 ? info : { ...info, extensions }, type: kind },
    program: is2022 ? 'spl-token-2022' : 'spl-token',
    space: account.data.length,
  }
}

const encoded = (account: Account, { encoding, slice }: ViewOptions, lookup: AccountLookup): unknown => {
  if (encoding === 'jsonParsed') {
    const view = parsed(account, lookup) ?? parsedTable(account)
    if (view !== undefined) return view
  }
  const data = slice ? account.data.subarray(slice.offset, slice.offset + slice.length) : account.data
  if (encoding === 'binary' || encoding === 'base58') {
    if (data.length > base58BytesMax) {
      throw new RpcError(
        -32600,
        'Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.',
      )
    }
    return encoding === 'binary' ? toBase58(data) : [toBase58(data), 'base58']
  }
  if (encoding === 'base64+zstd') return [zstdCompressSync(data).toString('base64'), encoding]
  return [Buffer.from(data).toString('base64'), 'base64']
}

/** One account in the form of getAccountInfo and related methods. */
export const accountView = (account: Account, viewOptions: ViewOptions, lookup: AccountLookup) => ({
  data: encoded(account, viewOptions, lookup),
  executable: account.executable,
  lamports: account.lamports,
  owner: account.owner,
  rentEpoch: neverRentBilled,
  space: account.data.length,
})
