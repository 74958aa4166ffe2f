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
  /** Reads the stream's update of an order, where the account is subscribed. */
  readStreamedOrder: VenueStreams['readOrder']
  signedActions: SignedActions
  pricing: Pricing
  rejections: Rejections
  collateralTransfer: CollateralTransfer
  /** Called when the venue rejects the trading key as unknown. */
  onAgentRevoked(task: TaskView, agent: string): Promise<void>
  /** Continues a task whose bracket lacks an exit. */
  repairBracket(
    task: TaskView,
    context: StepContext,
    orderOutcome: OrderOutcome,
    effects: EffectUpdate[],
  ): Promise<StepResult>
  /** Ends a task whose order is complete, or parks it at `confirm`; returns `result` by default. */
  onFilled?(
    task: TaskView,
    context: StepContext,
    orderOutcome: OrderOutcome,
    result: StepResult,
  ): StepResult | Promise<StepResult>
}
