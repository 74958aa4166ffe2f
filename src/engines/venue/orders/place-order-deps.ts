import type { CashSource } from '#engines/venue/records/cash-reconciliation.ts'
import type { EndResult, StepContext, StepResultOf, TaskView, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import type { Pricing } from './order-checks.ts'
import type { OrderOutcome } from './order-result.ts'
import type { OrderTaskData } from './order-task.ts'
import type { VenueDriverDeps } from './venue-effect.ts'

export type OrderStep = 'begin' | 'transferred' | 'leverage' | 'order' | 'confirm'
/** `Data` is the section's task data, and `Repair` names its steps that continue with an incomplete bracket. */
export type OrderStepResult<Data extends OrderTaskData, Repair extends string = never> = StepResultOf<
  Partial<OrderTaskData> | Partial<Data>,
  OrderStep | Repair
>
export type OrderEnd = EndResult<Partial<OrderTaskData>>

export type PlaceOrderDeps<
  Data extends OrderTaskData = OrderTaskData,
  Repair extends string = never,
> = VenueDriverDeps & {
  db: Queryable
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
    | 'ledgerSince'
  > &
    CashSource
  /** Reads the stream's update of an order, if the account is subscribed. */
  readStreamedOrder: VenueStreams['readOrder']
  pricing: Pricing
  /** Returns the writes for the commit that continues the task after its leverage was set. */
  onLeverageSet?(task: TaskView<Data>, now: Date): (tx: Tx) => Promise<void>
  repairBracket(
    task: TaskView<Data>,
    context: StepContext,
    orderOutcome: OrderOutcome,
  ): Promise<OrderStepResult<Data, Repair>>
  /** Ends or continues a task whose order is complete; by default the task ends with `result`. */
  onFilled?(
    task: TaskView<Data>,
    context: StepContext,
    orderOutcome: OrderOutcome,
    result: OrderEnd,
  ): OrderStepResult<Data, Repair> | Promise<OrderStepResult<Data, Repair>>
}
