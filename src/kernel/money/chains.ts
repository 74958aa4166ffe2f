/** Chains as the gateway describes them. Each adapter translates foreign ids and token names itself. */

/** Stands for the native coin of an EVM chain where a token is named by its address. */
export const nativeSentinel = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'

export type Token = { symbol: string; name: string; decimals: number; address: string }

export const chainOperations = ['swap', 'bridge', 'transfer'] as const
export type ChainOperation = (typeof chainOperations)[number]

type Row = {
  /** The public id. */
  id: string
  name: string
  displayName: string
  /** `priceId`: the key of the native coin at the price source. */
  native: Token & { priceId: string }
  supportedOperations: readonly ChainOperation[]
  rpcUrl: string
  /** Number of blocks, the including one counted, after which a transaction is considered final. */
  confirmations: number
  usdc: string
  tokens: readonly Token[]
  llamaSlug: string
  explorerUrl: string
  /** Time limit of one read, after which a response is sent without this chain. */
  readTimeoutMs: number
}

/** A router of Relay, and the contract that takes tokens for it by an approval. */
export type RelayRouter = { router: string; approvalProxy: string }

/** Contracts that swaps may call, from this table and never from a quote. */
export type SwapContracts = {
  /** WETH9 around the native coin. */
  wrapped: string
  /** Uniswap V2 routers; each may be approved for the exact amount of a swap. */
  routers: readonly string[]
  /** Where Relay takes deposits; null where it does not serve the chain. */
  depository: string | null
  /** LI.FI's contract, which swaps and starts bridges; null where it does not serve the chain. */
  aggregator: string | null
  /** Relay's routers, which run the swaps of a quote; empty where none serves the chain. */
  relayRouters: readonly RelayRouter[]
}

/** Gas limits of transactions. */
export type GasLimits = {
  /** The most that the chain allows one transaction (EIP-7825). */
  txMax: bigint
  /** The calls of a batch may use this; the margin of the estimate and the code of the account take the rest. */
  callsMax: bigint
  /** The limit of a transfer of nothing. Its data costs gas as well on some chains. */
  emptyTx: bigint
}

export type EvmChainRow = Row & {
  family: 'evm'
  /** Null where nothing is swapped. */
  swaps: SwapContracts | null
  /** The contract that users' accounts delegate to (EIP-7702); null where the chain does not support it. */
  delegate: string | null
  multicall: string
  /** What a simulated purchase of a token spends, in the native coin. */
  probeWei: bigint
  /** A contract sees the number of its own block. False on chains where it sees the parent chain's. */
  callsSeeBlockNumber: boolean
  gas: GasLimits
  /** The tip of the block's producer is at least the floor, and at most its cap, which the whole fee has too. */
  fees: { priorityFloorWei: bigint; priorityCapWei: bigint; capWei: bigint }
  /** While transactions are pending, the head is read this often. */
  blockPollMs: number
  /** A transaction without a receipt for this long is replaced. */
  stuckAfterMs: number
  /** Lifetime of a batch signature. */
  batchTtlSeconds: number
}
/** Relay's program on Solana, from this table and never from a quote. */
export type SolanaDepository = {
  program: string
  /** Its settings, which every deposit names. */
  state: string
  /** Receives SOL, and owns the accounts that receive tokens. */
  vault: string
}
export type SolanaChainRow = Row & {
  family: 'solana'
  /** Where Relay takes deposits; null where it does not serve the chain. */
  depository: SolanaDepository | null
  /** An account of the platform pays fees and rent. */
  isSponsored: boolean
  /** What a node calls a transaction that is considered final. */
  finality: 'confirmed' | 'finalized'
  /** While transactions are pending, their statuses are read this often. */
  statusPollMs: number
  /** The price of a compute unit, in micro-lamports: at least the floor, and beyond the cap nothing is sent. */
  fees: { priceFloorMicroLamports: bigint; priceCapMicroLamports: bigint }
}
export type Chain = EvmChainRow | SolanaChainRow

export type ChainStatus = 'ok' | 'degraded' | 'down'

/** Swaps leave the chain, so that what is bought there can be sold again. */
export const sellsTokens = ({ supportedOperations }: Pick<Chain, 'supportedOperations'>): boolean =>
  supportedOperations.includes('swap')

/** EVM addresses are case-insensitive; those of Solana are not, and none of them begins with 0x. */
export const canonicalAddress = (address: string): string =>
  address.startsWith('0x') ? address.toLowerCase() : address

/** The ledger's name of a token. */
export const assetOf = ({ id }: Pick<Chain, 'id'>, address: string): string =>
  `${id}:${canonicalAddress(address)}`

export const sameAddress = (chain: Pick<Chain, 'family'>, a: string, b: string): boolean =>
  chain.family === 'evm' ? a.toLowerCase() === b.toLowerCase() : a === b
