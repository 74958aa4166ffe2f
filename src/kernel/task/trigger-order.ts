import type { Fault } from '#kernel/contract/fault.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

/** A stored order that creates a task when a price crosses its trigger, as its row is. */

/** An order waits until the entry order that it protects has filled. */
export const triggerStatuses = ['waiting', 'armed', 'fired', 'cancelled', 'expired'] as const
export type TriggerStatus = (typeof triggerStatuses)[number]
/** Fires at or below the trigger price, or at or above it. */
export type TriggerDirection = 'lte' | 'gte'

/** Two prices that agree, or one twice: orders at or above the price count by the lower one, the others by the higher. */
export type PriceRange = { low: string; high: string }

export type TriggerOrder<Input = JsonObject> = {
  id: string
  user_id: string
  /** The kind of the task that it creates. */
  kind: string
  market: string
  direction: TriggerDirection
  trigger_price: string
  /** Orders whose price is decided by one quote; null: the price of the market decides. */
  quote_key: string | null
  /** The trigger price follows the highest price at this fraction below it. */
  trail: string | null
  high_water: string | null
  oco_group: string | null
  /** False where it sells only a part, so that the others of its group stay. */
  ends_group: boolean
  input: Input
  status: TriggerStatus
  /** The order of its group that fired. Where that one is armed again, this one is, too. */
  cancelled_by: string | null
  /** What its tasks derive theirs from; null: its own id. */
  execution_id: string | null
  /** The tasks that it created. */
  attempts: number
  entry_cloid: string | null
  /** The task that asked for it. */
  source_task_id: string | null
  /** The task that it created last. */
  task_id: string | null
  /** How that one ended, of an order that fired; null while it goes on. */
  task_end: 'completed' | 'failed' | 'cancelled' | null
  expires_at: Date | null
  created_at: Date
  updated_at: Date
}

/** Orders that the task arms when it completes: they count against the limit of the user from the acceptance on. */
export type OrderRoom = {
  count: number
  max: number
  refuse(open: number): Fault
}
