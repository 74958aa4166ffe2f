import type { JsonObject, NewEvent, StepResultOf, TaskView, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { QuotedTrade } from './quote-key.ts'
import type { OrderRow } from './store.ts'
import type { AvailableUnits, OrderSwap, SwapStep } from './swap-execution.ts'

export type PricedTrade = Pick<QuotedTrade, 'tokenIn' | 'tokenOut' | 'priced'>

export const orderKindVersion = 1

/** Counts the sales that were refused, and the prices that had moved back before the sale; each attempt is a task. */
export type Attempts = { failures?: number; moved?: number }
export type OrderRules<Input extends JsonObject> = {
  kind: string
  soldToken(input: Input): { chainId: string; address: string }
  /** Returns the most that the order may sell and what other orders' tasks sell of it; null if there is no limit. */
  unitsMax?(db: Queryable, order: OrderRow<Input>): Promise<AvailableUnits | null>
  /** Returns the swap for the units that may be sold, or null if nothing is left. */
  swapOf(input: Input, availableUnits: bigint): OrderSwap | null
  /** Returns what decides the price again, or null if it is the price of a token that the swap does not trade. */
  priced(input: Input): PricedTrade | null
  event(order: OrderRow<Input>): NewEvent
  resultOf(orderId: string): JsonObject
  /** Runs in the commit that ends a sale, with the units that left the wallet and did not return. */
  onSold?(tx: Tx, order: OrderRow<Input>, units: bigint): Promise<void>
}
export type OrderTaskData = JsonObject & {
  trigger_order_id?: string
  priced_units?: string
  /** Whether the last read of the wallet showed nothing of the token. */
  is_empty?: boolean
  /** The task data shows an earlier sale, which is looked up and settled instead of selling again. */
  is_sold?: boolean
}

export type OrderStep = 'prepare' | SwapStep
export type OrderTask<Input> = TaskView<OrderTaskData, Input>
export type OrderStepResult = StepResultOf<OrderTaskData, OrderStep>
export type OrderEnding = Extract<OrderStepResult, { end: string }>
