/** The facts of a chain. Foreign spellings of ids and tokens stay in each adapter. */

export type Token = { symbol: string; name: string; decimals: number; address: string }

export const chainOperations = ['swap', 'bridge', 'transfer'] as const
export type ChainOperation = (typeof chainOperations)[number]

type Row = {
  /** The public id. */
  id: string
  name: string
  displayName: string
  /** `priceId`: how the price source spells the chain's own coin. */
  native: Token & { priceId: string }
  supportedOperations: readonly ChainOperation[]
  rpcUrl: string
  /** Blocks, the including one counted, after which nothing is expected to change. */
  confirmations: number
  usdc: string
  tokens: readonly Token[]
  llamaSlug: string
  explorerUrl: string
  /** One cheap look at the chain may take this long before others are served without it. */
  readTimeoutMs: number
}

export type EvmChainRow = Row & {
  family: 'evm'
  /** The contract whose code users' accounts borrow (EIP-7702); null where the chain cannot do so. */
  delegate: string | null
  multicall: string
  /** A contract call sees the number of its own block; on some chains it sees that of the chain below. */
  callsSeeBlockNumber: boolean
  fees: { priorityFloorWei: bigint; capWei: bigint }
  /** A transaction without a receipt for this long is replaced. */
  stuckAfterMs: number
  /** The signature of a batch lives this long. */
  batchTtlSeconds: number
}
export type SolanaChainRow = Row & { family: 'solana' }
export type Chain = EvmChainRow | SolanaChainRow

export type ChainStatus = 'ok' | 'degraded' | 'down'

/** The asset of the ledger: EVM addresses compare lower-cased, Solana ones as they are. */
export const assetOf = (chain: Pick<Chain, 'id' | 'family'>, address: string): string =>
  `${chain.id}:${chain.family === 'evm' ? address.toLowerCase() : address}`

export const sameAddress = (chain: Pick<Chain, 'family'>, a: string, b: string): boolean =>
  chain.family === 'evm' ? a.toLowerCase() === b.toLowerCase() : a === b
