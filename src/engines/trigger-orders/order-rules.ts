import type { JsonObject, NewEvent, StepResultOf, TaskView, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { QuotedTrade } from './quote-key.ts'
import type { OrderRow } from './store.ts'
import type { AvailableUnits, OrderSwap, SwapStep } from './swap-execution.ts'

/** How the orders of a kind sell, and the data of their tasks. */

export type PricedTrade = Pick<QuotedTrade, 'tokenIn' | 'tokenOut' | 'priced'>

export const orderKindVersion = 1

/** Sales that were refused, and prices that had moved back before the sale: each attempt is a task. */
export type Attempts = { failures?: number; moved?: number }
export type OrderRules<Input extends JsonObject> = {
  kind: string
  soldToken(input: Input): { chainId: string; address: string }
  /**
   * The most that the order may sell whatever the balance is, and what tasks of other orders sell of it now; null: no such
   * limit.
   */
  unitsMax?(db: Queryable, order: OrderRow<Input>): Promise<AvailableUnits | null>
  /** The swap for the units that may be sold; null where nothing is left. */
  swapOf(input: Input, availableUnits: bigint): OrderSwap | null
  /** What decides the price again; null where it is another token than those of the swap. */
  priced(input: Input): PricedTrade | null
  /** The event of a change of the order. */
  event(order: OrderRow<Input>): NewEvent
  /** Fields of the result that name the order. */
  resultOf(orderId: string): JsonObject
  /** Runs in the commit that ends a sale, with the units that left the wallet and did not come back. */
  onSold?(tx: Tx, order: OrderRow<Input>, units: bigint): Promise<void>
}
export type OrderTaskData = JsonObject & {
  trigger_order_id?: string
  /** The amount at which the price had moved back. */
  priced_units?: string
  /** The last read of the wallet showed nothing of the token. */
  is_empty?: boolean
  /** What it sold before this task, as its data say, is looked up to be settled, and not sold again. */
  is_sold?: boolean
}

export type OrderStep = 'prepare' | SwapStep
export type OrderTask<Input> = TaskView<OrderTaskData, Input>
export type OrderStepResult = StepResultOf<OrderTaskData, OrderStep>
export type OrderEnding = Extract<OrderStepResult, { end: string }>
