import type { QuoteUrgency } from '#kernel/async/quote-rate-shares.ts'
import type { EvmCall } from '#kernel/task/signer.ts'

/**
 * A provider of swap routes, as swaps use it. Chain ids are public ids, and tokens are addresses of the chain
 * table: a native coin is the `native.address` of its chain. Foreign ids, native sentinels and spellings do not
 * leave the adapter.
 */

export type TokenOnChain = { chainId: string; token: string }

export type RouteRequest = {
  /** The user's account on the origin chain, to which a refund goes. */
  user: string
  recipient: string
  origin: TokenOnChain
  destination: TokenOnChain
  amountInUnits: bigint
  slippageBps: number
  /** The route must still be valid after this time. */
  ttlSeconds: number
  urgency: QuoteUrgency
  /** The account that pays fees and rent on Solana in place of the user. */
  feePayer?: string
}

export const routeFeeTypes = ['platform', 'gas', 'bridge', 'lp', 'sponsor'] as const
/** An included fee is already taken from the input, so that the amount out is net of it. */
export type RouteFee = TokenOnChain & {
  type: (typeof routeFeeTypes)[number]
  amountUnits: bigint
  isIncluded: boolean
}

export type RouteLeg = {
  tool: string
  origin: TokenOnChain
  destination: TokenOnChain
  amountInUnits: bigint
  amountOutUnits: bigint
}

/** A preceding approval is a call too; the gateway replaces it by an approval of the exact amount. */
export type RouteCall = EvmCall & { kind: 'approve' | 'swap' | 'deposit' }
export type SolanaInstruction = {
  programId: string
  accounts: { address: string; isSigner: boolean; isWritable: boolean }[]
  /** The data of the instruction, as hexadecimal text. */
  data: string
}
/** The calls or instructions that the user's account has to send on the origin chain, all in one transaction. */
export type RouteSteps =
  | {
      family: 'evm'
      chainId: string
      calls: RouteCall[]
      /** The provider's own gas estimate, if it gives one, because a node's estimate can be too low. */
      gas: bigint | null
    }
  | { family: 'solana'; chainId: string; instructions: SolanaInstruction[]; lookupTables: string[] }

/** A provider's proposal. It is untrusted: the gateway checks targets, spenders, amounts and recipients. */
export type ProposedRoute = {
  provider: string
  providerRequestId: string
  /**
   * The id that a deposit contains in its calldata: the id of the provider's order, or the id of the request if the
   * quote names no order.
   */
  depositId: string
  origin: TokenOnChain
  destination: TokenOnChain
  recipient: string
  amountInUnits: bigint
  amountOutUnits: bigint
  amountOutMinUnits: bigint
  fees: RouteFee[]
  legs: RouteLeg[]
  /** A positive impact is value that is lost. */
  priceImpactBps: number
  etaSeconds: number
  expiresAt: Date
  steps: RouteSteps
  /** With `receipt` the origin transaction proves the outcome; with `status` the provider settles it afterwards. */
  settledBy: 'receipt' | 'status'
}

/** `waiting` means that no deposit was seen. `settling` also stands for every status that the adapter does not know. */
export type ProviderState = 'waiting' | 'settling' | 'success' | 'refunded' | 'failed' | 'unknown'
export type ProviderTx = { chainId: string; txHash: string }
/** A provider's status of a request. It may lag and return to an earlier state: only the chains prove amounts. */
export type ProviderStatus = {
  state: ProviderState
  /** The provider's own word for the cause of a refund or failure, such as SLIPPAGE. */
  reason: string | null
  refundReason: string | null
  originTxs: ProviderTx[]
  destinationTxs: ProviderTx[]
  refund: (TokenOnChain & { amountUnits: bigint; txHash: string | null }) | null
  /** The token in which a success was paid, if the provider names it. */
  paidToken: string | null
}
export type StatusRequest = {
  providerRequestId: string
  originChainId: string
  destinationChainId: string
  originTxHash: string | null
}

export type SwapProvider = {
  name: string
  /** Asks for a route; the request reserves nothing and moves nothing. */
  quote(request: RouteRequest, signal?: AbortSignal): Promise<ProposedRoute>
  /** Returns the provider's status of a request; its state is `unknown` if the provider has no such request. */
  status(request: StatusRequest, signal?: AbortSignal): Promise<ProviderStatus>
  /** Returns the id with which a deposit's status is requested, or undefined if the provider does not name it. */
  requestOf(depositTxHash: string): Promise<string | undefined>
}
