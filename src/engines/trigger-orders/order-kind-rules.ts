import type { JsonObject, NewEvent, StepResultOf, TaskView, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { QuotedTrade } from './quote-key.ts'
import type { OrderRow } from './store.ts'
import type { AvailableUnits, OrderSwap, SwapStep } from './swap-port.ts'

export type PricedTrade = Pick<QuotedTrade, 'tokenIn' | 'tokenOut' | 'priced'>

export const orderKindVersion = 1

/** How many sales of an order were refused, and how many met a price that moved back; each attempt is a task. */
export type Attempts = { failures?: number; moved?: number }
export type OrderRules<Input extends JsonObject> = {
  kind: string
  soldToken(input: Input): { chainId: string; address: string }
  /** Returns the most that the order may sell, and what other orders' tasks sell of that; null without a limit. */
  unitsMax?(db: Queryable, order: OrderRow<Input>): Promise<AvailableUnits | null>
  /** Returns the swap that sells the available units, or null if nothing is left to sell. */
  swapOf(input: Input, availableUnits: bigint): OrderSwap | null
  /** Returns the trade whose price is checked again; null if the order watches a token outside the swap. */
  priced(input: Input): PricedTrade | null
  event(order: OrderRow<Input>): NewEvent
  resultOf(orderId: string): JsonObject
  /** Called in the commit that ends a sale, with the units that left the wallet and did not return. */
  onSold?(tx: Tx, order: OrderRow<Input>, units: bigint): Promise<void>
}
export type OrderTaskData = JsonObject & {
  trigger_order_id?: string
  priced_units?: string
  /** Whether the last read of the wallet showed nothing of the token. */
  is_empty?: boolean
  /** Whether the task data shows an earlier sale, which is looked up and settled instead of selling again. */
  is_sold?: boolean
}

export type OrderStep = 'prepare' | SwapStep
export type OrderTask<Input> = TaskView<OrderTaskData, Input>
export type OrderStepResult = StepResultOf<OrderTaskData, OrderStep>
export type OrderEnding = Extract<OrderStepResult, { end: string }>
