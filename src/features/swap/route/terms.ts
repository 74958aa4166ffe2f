import type { Chain, Token } from '#kernel/money/chains.ts'

export type SwapToken = { chain: Chain; token: Token; isNative: boolean }
export type SwapTerms = {
  userId: string
  origin: SwapToken
  destination: SwapToken
  /** The user's account on the origin chain. */
  account: string
  /** The user's account on the destination chain. */
  recipient: string
  amountInUnits: bigint
  /** The value in micro-dollars, rounded up; null if the price is unknown. */
  valueInMicros: bigint | null
  slippageBps: number
  /** How much of the value at trusted prices the route may lose, in basis points. */
  maxImpactBps: number
  deadlineSeconds: number
  maxFeeBps: number | null
}
