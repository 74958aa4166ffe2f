/** Chains as the gateway describes them. Each adapter translates foreign ids and token names itself. */

/** This address stands for the native coin of an EVM chain where a token is named by its address. */
export const nativeSentinel = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'

export type Token = { symbol: string; name: string; decimals: number; address: string }

export const chainOperations = ['swap', 'bridge', 'transfer'] as const
export type ChainOperation = (typeof chainOperations)[number]

type Row = {
  id: string
  name: string
  displayName: string
  /** `priceId` is the key of the native coin at the price source. */
  native: Token & { priceId: string }
  supportedOperations: readonly ChainOperation[]
  rpcUrl: string
  /** A transaction is considered final after this many blocks, the including one counted. */
  confirmations: number
  usdc: string
  tokens: readonly Token[]
  llamaSlug: string
  explorerUrl: string
  /** How long one read of the chain may take; after that, a response is sent without this chain. */
  readTimeoutMs: number
}

export type RelayRouter = { router: string; approvalProxy: string }

/** The contracts that swaps may call. They come from this table, and never from a quote. */
export type SwapContracts = {
  /** The WETH9 contract of the native coin. */
  wrapped: string
  /** Uniswap V2 routers. Each may be approved for the exact amount of a swap. */
  routers: readonly string[]
  /** The contract where Relay takes deposits; null if it does not serve the chain. */
  depository: string | null
  /** LI.FI's contract, which swaps and starts bridges; null if LI.FI does not serve the chain. */
  aggregator: string | null
  /** The routers that run the swaps of Relay's quotes; the list is empty if no such router serves the chain. */
  relayRouters: readonly RelayRouter[]
}

export type GasLimits = {
  /** The most gas that the chain allows one transaction (EIP-7825). */
  txMax: bigint
  /**
   * The most gas for the calls of a batch. The rest of `txMax` is for the margin of the estimate and for the account's
   * own code.
   */
  callsMax: bigint
  /** The gas limit of an empty transfer. On some chains its data costs gas as well. */
  emptyTx: bigint
}

export type EvmChainRow = Row & {
  family: 'evm'
  /** The contracts that swaps may call on the chain; null if the gateway swaps nothing there. */
  swaps: SwapContracts | null
  /** The contract that users' accounts delegate to (EIP-7702); null if the chain does not support it. */
  delegate: string | null
  multicall: string
  /** The native coins that a simulated purchase of a token spends. */
  probeWei: bigint
  /** Whether a contract sees the number of its own block. On some chains it sees the parent chain's. */
  callsSeeBlockNumber: boolean
  gas: GasLimits
  /** The tip for the block producer stays between its floor and its cap; `capWei` bounds the whole fee per gas. */
  fees: { priorityFloorWei: bigint; priorityCapWei: bigint; capWei: bigint }
  /** How often the head is read while transactions are pending. */
  blockPollMs: number
  /** A transaction that has had no receipt for this long is replaced. */
  stuckAfterMs: number
  batchTtlSeconds: number
}
/** Relay's program on Solana. It comes from this table, and never from a quote. */
export type SolanaDepository = {
  program: string
  /** The settings account, which every deposit names. */
  state: string
  /** The account that receives SOL and owns the accounts that receive tokens. */
  vault: string
}
export type SolanaChainRow = Row & {
  family: 'solana'
  /** Where Relay takes deposits; null if it does not serve the chain. */
  depository: SolanaDepository | null
  isSponsored: boolean
  /** The commitment level at which a transaction is considered final. */
  finality: 'confirmed' | 'finalized'
  /** How often the statuses of pending transactions are read. */
  statusPollMs: number
  /** Limits of the price of a compute unit. Beyond the cap nothing is sent. */
  fees: { priceFloorMicroLamports: bigint; priceCapMicroLamports: bigint }
}
export type Chain = EvmChainRow | SolanaChainRow

export type ChainStatus = 'ok' | 'degraded' | 'down'

/** Whether swaps start on the chain, so that a token which is bought there can be sold again. */
export const sellsTokens = ({ supportedOperations }: Pick<Chain, 'supportedOperations'>): boolean =>
  supportedOperations.includes('swap')

/** Makes an EVM address lower case, since its case has no meaning. Solana's addresses stay: none begins with 0x. */
export const canonicalAddress = (address: string): string =>
  address.startsWith('0x') ? address.toLowerCase() : address

export const toAssetId = ({ id }: Pick<Chain, 'id'>, address: string): string =>
  `${id}:${canonicalAddress(address)}`

export const sameAddress = (chain: Pick<Chain, 'family'>, a: string, b: string): boolean =>
  chain.family === 'evm' ? a.toLowerCase() === b.toLowerCase() : a === b
