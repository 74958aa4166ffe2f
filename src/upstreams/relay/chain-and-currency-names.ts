import { type Chain, sameAddress } from '#kernel/money/chains.ts'
import type { TokenOnChain } from '#kernel/money/swap-provider.ts'

const solanaId = 792703809
const nativeOf = {
  evm: '0x0000000000000000000000000000000000000000',
  solana: '11111111111111111111111111111111',
}

type Row = Pick<Chain, 'id' | 'family' | 'native'>
export type ForeignNames = {
  rowOf(chainId: string): Row | undefined
  chainId(chainId: string): number | undefined
  /** Returns the public id of a chain by Relay's id, or undefined for a chain that is not served. */
  publicId(foreign: unknown): string | undefined
  currency(token: TokenOnChain): string | undefined
  /** Returns the address of a native coin in the chain table, and the given address for a token. */
  token(chainId: string, currency: string): string | undefined
}

export function foreignNames(chains: readonly Row[]): ForeignNames {
  const rows = new Map(chains.map((row) => [row.id, row]))
  const foreignId = ({ id, family }: Row) => (family === 'solana' ? solanaId : Number(id))
  const publicIds = new Map(chains.map((row) => [foreignId(row), row.id]))
  return {
    rowOf: (chainId) => rows.get(chainId),
    chainId: (chainId) => {
      const row = rows.get(chainId)
      return row && foreignId(row)
    },
    publicId: (foreign) => (typeof foreign === 'number' ? publicIds.get(foreign) : undefined),
    currency({ chainId, token }) {
      const row = rows.get(chainId)
      if (!row) return undefined
      return sameAddress(row, token, row.native.address) ? nativeOf[row.family] : token
    },
    token(chainId, currency) {
      const row = rows.get(chainId)
      if (!row) return undefined
      return sameAddress(row, currency, nativeOf[row.family]) ? row.native.address : currency
    },
  }
}
