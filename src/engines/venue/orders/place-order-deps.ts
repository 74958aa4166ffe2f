import type { EffectUpdate, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import type { CollateralTransfer } from './collateral-transfer.ts'
import type { OrderOutcome } from './order-result.ts'
import type { Pricing } from './protective-orders.ts'
import type { SignedActions } from './signed-action.ts'

/** What the steps of an order need from the venue and from the section that places it. */

export type Rejections = {
  codeOfRejection(message: string): string
  codeOfStatus(status: string): string
  isUnknownSigner(message: string): boolean
}
export type PlaceOrderDeps = {
  venue: Pick<
    Hyperliquid,
    | 'order'
    | 'openOrders'
    | 'fillsSince'
    | 'recentFills'
    | 'account'
    | 'spotBalances'
    | 'timeMs'
    | 'passedMs'
    | 'marketSettings'
  >
  /** What the stream told of an order, where the account is followed. */
  readStreamedOrder: VenueStreams['readOrder']
  signedActions: SignedActions
  pricing: Pricing
  rejections: Rejections
  collateralTransfer: CollateralTransfer
  /** The venue knows the agent no more. */
  onAgentRevoked(task: TaskView, agent: string): Promise<void>
  /** Steps for what `confirm` finds to be missing. */
  repairBracket(
    task: TaskView,
    context: StepContext,
    orderOutcome: OrderOutcome,
    effects: EffectUpdate[],
  ): Promise<StepResult>
  /** Ends a task whose order is complete, or parks it at `confirm`; by default the result as it is. */
  onFilled?(
    task: TaskView,
    context: StepContext,
    orderOutcome: OrderOutcome,
    result: StepResult,
  ): StepResult | Promise<StepResult>
}
