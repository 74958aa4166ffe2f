import type { EffectUpdate, EndResult, StepContext, StepResultOf, TaskView } from '#kernel/task.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import type { CollateralTransfer } from './collateral-transfer.ts'
import type { RejectionDeps } from './order-failures.ts'
import type { OrderOutcome } from './order-result.ts'
import type { OrderTaskData } from './order-task.ts'
import type { SignedActions } from './signed-action.ts'
import type { Pricing } from './venue-orders.ts'

/** What the steps of an order need from the venue and from the section that places it. */

export type OrderStep = 'begin' | 'transferred' | 'leverage' | 'order' | 'confirm'
/** `Data`: of the section. `Repair`: the names of its steps that continue with an incomplete bracket. */
export type OrderStepResult<Data extends OrderTaskData, Repair extends string = never> = StepResultOf<
  Partial<OrderTaskData> | Partial<Data>,
  OrderStep | Repair
>
/** The end of an order task. */
export type OrderEnd = EndResult<Partial<OrderTaskData>>

export type PlaceOrderDeps<
  Data extends OrderTaskData = OrderTaskData,
  Repair extends string = never,
> = RejectionDeps & {
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
  collateralTransfer: CollateralTransfer
  /** Continues a task whose bracket lacks an exit. */
  repairBracket(
    task: TaskView<Data>,
    context: StepContext,
    orderOutcome: OrderOutcome,
    effects: EffectUpdate[],
  ): Promise<OrderStepResult<Data, Repair>>
  /** Ends a task whose order is complete, or parks it at `confirm`; returns `result` by default. */
  onFilled?(
    task: TaskView<Data>,
    context: StepContext,
    orderOutcome: OrderOutcome,
    result: OrderEnd,
  ): OrderStepResult<Data> | Promise<OrderStepResult<Data>>
}
