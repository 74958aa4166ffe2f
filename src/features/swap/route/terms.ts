import type { FixedTpSl } from '#engines/trigger-orders/tp-sl.ts'
import type { TokenAt } from '#kernel/contract/token-ref.ts'

export type SwapTerms = {
  userId: string
  origin: TokenAt
  destination: TokenAt
  /** The user's account on the origin chain. */
  account: string
  /** The user's account on the destination chain. */
  recipient: string
  amountInUnits: bigint
  /** The value of the sold amount in micro-dollars, rounded up; null if the price is unknown. */
  valueInMicros: bigint | null
  slippageBps: number
  /** How much of the value at trusted prices the route may lose, in basis points. */
  maxImpactBps: number
  deadlineSeconds: number
  maxFeeBps: number | null
}

export type GivenAmount = { amount: string } | { amount_usd: string }
/** The terms of a request, with its amount as it was given, the quote that it executes, and its hooks. */
export type AskedTerms = SwapTerms & {
  given: GivenAmount
  quoteId: string | null
  /** The legs of the hooks that the swap arms. */
  legs: readonly FixedTpSl[]
  /** Whether the swap cancels the hooks on the sold token. */
  cancelsHooks: boolean
}
