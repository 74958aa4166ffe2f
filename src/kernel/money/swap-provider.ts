import type { FaultCode } from '#kernel/contract/fault.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import type { QuoteUrgency } from './quote-budget.ts'

/**
 * A provider of swap routes, as swapping asks it. Chain ids are public ids, and tokens are addresses of the chain table:
 * a native coin is the `native.address` of its chain. Foreign ids, native sentinels and spellings end in the adapter.
 */

export type TokenOnChain = { chainId: string; token: string }

export type RouteRequest = {
  /** The user's account on the origin chain, to which a refund goes. */
  user: string
  /** The user's account on the destination chain. */
  recipient: string
  origin: TokenOnChain
  destination: TokenOnChain
  amountInUnits: bigint
  slippageBps: number
  /** The route must still be valid after this time. */
  ttlSeconds: number
  /** Which part of the provider's limit the quote counts against. */
  urgency: QuoteUrgency
  /** On Solana: the account that pays fees and rent in place of the user. */
  feePayer?: string
}

export const routeFeeTypes = ['platform', 'gas', 'bridge', 'lp', 'sponsor'] as const
/** `isIncluded`: taken from the input already, so that the amount out is net of it. */
export type RouteFee = TokenOnChain & {
  type: (typeof routeFeeTypes)[number]
  amountUnits: bigint
  isIncluded: boolean
}

export type RouteLeg = {
  /** The pool, bridge or solver, as its provider names it. */
  tool: string
  origin: TokenOnChain
  destination: TokenOnChain
  amountInUnits: bigint
  amountOutUnits: bigint
}

/** An approval before it is a call as well; the gateway replaces it by one of the exact amount. */
export type RouteCall = EvmCall & { kind: 'approve' | 'swap' | 'deposit' }
export type SolanaInstruction = {
  programId: string
  accounts: { address: string; isSigner: boolean; isWritable: boolean }[]
  /** Hexadecimal text. */
  data: string
}
/** What the user's account has to send on the origin chain, all of it in one transaction. */
export type RouteSteps =
  | {
      family: 'evm'
      chainId: string
      calls: RouteCall[]
      /** The provider's own estimate, where it gives one: an estimate of the node can be too low. */
      gas: bigint | null
    }
  | { family: 'solana'; chainId: string; instructions: SolanaInstruction[]; lookupTables: string[] }

/** What a provider proposes. It is untrusted: targets, spenders, amounts and recipients are checked by the gateway. */
export type ProposedRoute = {
  provider: string
  /** What the status is asked by. */
  providerRequestId: string
  /** What a deposit names in its calldata: the id of an order of the request, or that of the request itself. */
  depositId: string
  origin: TokenOnChain
  destination: TokenOnChain
  recipient: string
  amountInUnits: bigint
  amountOutUnits: bigint
  amountOutMinUnits: bigint
  fees: RouteFee[]
  legs: RouteLeg[]
  /** Positive: value that is lost. */
  priceImpactBps: number
  etaSeconds: number
  expiresAt: Date
  steps: RouteSteps
  /** `receipt`: the origin transaction proves the outcome; `status`: the provider settles it afterwards. */
  settledBy: 'receipt' | 'status'
}

/** `waiting`: no deposit was seen; `settling` also stands for every word that the adapter does not know. */
export type ProviderState = 'waiting' | 'settling' | 'success' | 'refunded' | 'failed' | 'unknown'
export type ProviderTx = { chainId: string; txHash: string }
/** What a provider says of a request. It may lag, and return to an earlier state: only the chains prove amounts. */
export type ProviderStatus = {
  state: ProviderState
  /** The provider's own word for the cause of a refund or failure, such as SLIPPAGE. */
  reason: string | null
  /** Why a refund failed, likewise. */
  refundReason: string | null
  originTxs: ProviderTx[]
  destinationTxs: ProviderTx[]
  refund: (TokenOnChain & { amountUnits: bigint; txHash: string | null }) | null
  /** What a success was paid in, where the provider says it. */
  paidToken: string | null
}
export type StatusRequest = {
  providerRequestId: string
  originChainId: string
  destinationChainId: string
  /** Null where no transaction was mined yet. */
  originTxHash: string | null
}

/**
 * What the calls throw as a `Fault`: `validation` with an issue on a field of the swap request, `policy_denied` with the
 * reason `sanctioned`, and `unavailable` after the retries of the adapter, with `retry_after` where the provider gives it.
 */
export type SwapProviderFault = Extract<
  FaultCode,
  | 'validation'
  | 'no_route'
  | 'insufficient_liquidity'
  | 'conflict'
  | 'policy_denied'
  | 'unavailable'
  | 'upstream_changed'
>

export type SwapProvider = {
  name: string
  /** Reserves and moves nothing. */
  quote(request: RouteRequest, signal?: AbortSignal): Promise<ProposedRoute>
  /** `unknown` where the provider has no such request. */
  status(request: StatusRequest, signal?: AbortSignal): Promise<ProviderStatus>
  /** What the status of a deposit is asked by; undefined where the provider does not name it. */
  requestOf(depositTxHash: string): Promise<string | undefined>
}

/** Contracts of one provider on one EVM chain, from configuration: a quote that names others is refused. */
export type ProviderContracts = {
  /** Contracts that the user's account may call. */
  targets: readonly string[]
  /** Contracts that may be approved to take a token. */
  spenders: readonly string[]
}
