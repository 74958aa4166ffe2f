import type { Fault } from '#kernel/contract/fault.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

/** The states of a trigger order. It is `waiting` until the entry order that it protects has filled. */
export const triggerStatuses = ['waiting', 'armed', 'fired', 'cancelled', 'expired'] as const
export type TriggerStatus = (typeof triggerStatuses)[number]
/** The order fires at or below the trigger price (`lte`), or at or above it (`gte`). */
export type TriggerDirection = 'lte' | 'gte'

/**
 * The lower and the higher of two agreeing price readings, or one price twice. An order fires only if both prices cross
 * its trigger, so `gte` orders compare `low`, and `lte` orders compare `high`.
 */
export type PriceRange = { low: string; high: string }

export type TriggerOrder<Input = JsonObject> = {
  id: string
  user_id: string
  kind: string
  market: string
  direction: TriggerDirection
  trigger_price: string
  /** Orders with the same key are decided by one quote; if null, the price of the market decides. */
  quote_key: string | null
  /** The fraction by which the trigger price of a trailing order stays below the highest price. */
  trail: string | null
  high_water: string | null
  oco_group: string | null
  /** False if the order sells only a part, so that the other orders of its group stay. */
  ends_group: boolean
  input: Input
  status: TriggerStatus
  /**
   * The order of the group that fired and so cancelled this order. If that order is armed again, so is this one.
   */
  cancelled_by: string | null
  /** The id from which the order's tasks derive their execution ids; if null, the order's own id. */
  execution_id: string | null
  attempts: number
  entry_cloid: string | null
  source_task_id: string | null
  task_id: string | null
  /** How the task of a fired order ended; null while the task runs. */
  task_end: 'completed' | 'failed' | 'cancelled' | null
  expires_at: Date | null
  created_at: Date
  updated_at: Date
}

/** Orders that the task arms when it completes: they count against the user's limit from the acceptance on. */
export type OrderRoom = {
  count: number
  max: number
  refuse(open: number): Fault
}
