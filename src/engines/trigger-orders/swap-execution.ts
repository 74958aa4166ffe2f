import type { ReservedSpend } from '#durable/accept/reserve-spend.ts'
import type { Chain, Token } from '#kernel/money/chains.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { JsonObject, Steps } from '#kernel/task/task.ts'

/** Swaps as orders need them: their quotes, their admission and their steps. */

export type SwapStep = 'sign' | 'confirm' | 'track'
export type OrderSwap = {
  chainIn: string
  chainOut: string
  tokenIn: string
  tokenOut: string
  amount: { units: bigint } | { usd: string }
  slippageBps: number
  /** How much of the value at trusted prices may be lost; undefined: as of a swap that does not say. */
  maxImpactBps?: number | undefined
  /** It returns money to the user: caps and switches do not stop it while it accepts no more than the default loss. */
  isExit: boolean
}
type TokenAt = { chain: Chain; token: Token }
export type OrderTrade = { origin: TokenAt; destination: TokenAt; amountInUnits: bigint }
/** A swap that was quoted, checked and simulated, up to its acceptance. */
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
  /** Units of the wallet that no task has reserved, and those that one has. */
  available(userId: string, token: { chainId: string; address: string }): Promise<AvailableUnits>
  /** The output of the best route that the gateway would sign for the user. */
  quoteOut(trade: OrderTrade, userId: string): Promise<bigint>
  /** Whether a sale that may lose so much is an exit for the policy: who may sell at any price may empty a wallet. */
  isExitLoss(maxImpactBps: number | undefined): boolean
  prepare(swap: OrderSwap, userId: string): Promise<PreparedOrder>
  /** The kind of the effect of a sale on this chain. */
  effectKindOn(chainId: string): string
  /**
   * Units of the token that left the wallet under this execution id; undefined where nothing was executed under it. A fault
   * with the extra `executed` says that it was, and that no node shows by what.
   */
  soldBefore(
    userId: string,
    sale: { chainId: string; address: string; executionId: string },
  ): Promise<bigint | undefined>
  /** The data by which the swap is settled where it was executed before: nothing is reserved, and nothing signed. */
  quoteSold(swap: OrderSwap, userId: string): Promise<JsonObject>
  steps: Steps<JsonObject, SwapStep>
}
