import type { ReservedSpend } from '#durable/accept/reserve-spend.ts'
import type { Chain, Token } from '#kernel/money/chains.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { JsonObject, Steps } from '#kernel/task/task.ts'

export type SwapStep = 'sign' | 'confirm' | 'track'
export type OrderSwap = {
  chainIn: string
  chainOut: string
  tokenIn: string
  tokenOut: string
  amount: { units: bigint } | { usd: string }
  slippageBps: number
  /** The part of the value at trusted prices that may be lost; if undefined, the default of swaps applies. */
  maxImpactBps?: number | undefined
  /**
   * Whether the policy treats the swap as an exit. Spending caps and kill switches do not stop an exit that accepts at
   * most the default loss.
   */
  isExit: boolean
}
type TokenAt = { chain: Chain; token: Token }
export type OrderTrade = { origin: TokenAt; destination: TokenAt; amountInUnits: bigint }
/** A swap that is quoted, checked and simulated, but not yet accepted. */
export type PreparedOrder = {
  data: JsonObject
  spend: ReservedSpend
  action: PlannedAction
  amounts: Amounts
  tokens: { in: Token; out: Token }
}
export type Amounts = { inUnits: bigint; outUnits: bigint }
export type AvailableUnits = { units: bigint; heldUnits: bigint }
export type SwapExecution = {
  /** Returns the wallet's units that no task has reserved, and the units that tasks have reserved. */
  available(userId: string, token: { chainId: string; address: string }): Promise<AvailableUnits>
  /** Returns the output of the best route that the gateway would sign for the user. */
  quoteOut(trade: OrderTrade, userId: string): Promise<bigint>
  /** Whether a sale with this loss is an exit for the policy; a sale at any price could empty a wallet. */
  isExitLoss(maxImpactBps: number | undefined): boolean
  prepare(swap: OrderSwap, userId: string): Promise<PreparedOrder>
  effectKindOn(chainId: string): string
  /**
   * Returns the units of the token that left the wallet under this execution id, or undefined if nothing was
   * executed. A fault with the extra `executed` means that something was, but no node shows what.
   */
  soldBefore(
    userId: string,
    sale: { chainId: string; address: string; executionId: string },
  ): Promise<bigint | undefined>
  /** Returns the data that settles a swap that was executed before; nothing is reserved or signed. */
  quoteSold(swap: OrderSwap, userId: string): Promise<JsonObject>
  steps: Steps<JsonObject, SwapStep>
}
