import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { OrderRefusal } from '#kernel/money/prediction-refusals.ts'
import type { JsonObject, StepResultOf, TaskProgress, TaskView } from '#kernel/task/task.ts'
import type { ExitTerms } from './exit-request.ts'
import type { OrderTerms } from './order-request.ts'

/** The data of a task that places an order. */

type Stored<T> = {
  [K in keyof T]: T[K] extends bigint
    ? string
    : T[K] extends bigint | null
      ? string | null
      : T[K] extends Date | null
        ? string | null
        : T[K]
}
export type StoredTerms = Stored<OrderTerms>

export type OrderTaskData = {
  wallet: VenueWallet
  terms: StoredTerms
  /** The order's role: an order of the user, or an exit that the gateway places. */
  leg?: 'order' | 'tp' | 'sl'
  /** The purchase whose shares an exit sells. */
  entry_order_id?: string
  /** What the order can cost at most, its fee included. */
  cost_units: string
  exits?: ExitTerms[]
  order_id?: string
  market_id?: string
  /** What the venue answered to the order, or says of it. */
  order_status?: string
  trade_ids?: string[]
  tx_hashes?: string[]
  making_units?: string
  taking_units?: string
  protocol?: string
  /** Whether an order that never rested was replaced by another one. */
  is_renewed?: boolean
  /** A refusal of bytes that may have arrived before: it counts only once the venue would list the order. */
  refusal?: { reason: OrderRefusal; message: string; at: string } | null
  polls?: number
  progress?: TaskProgress | null
  note?: string | null
  fills?: JsonObject[]
  transactions?: JsonObject[]
}

const text = (value: bigint | null): string | null => (value === null ? null : String(value))
const units = (value: string | null): bigint | null => (value === null ? null : BigInt(value))

export const storedTerms = (terms: OrderTerms): StoredTerms => ({
  ...terms,
  expiresAt: terms.expiresAt?.toISOString() ?? null,
  priceMicros: text(terms.priceMicros),
  sizeUnits: text(terms.sizeUnits),
  allInUnits: text(terms.allInUnits),
  maxFeeUnits: text(terms.maxFeeUnits),
})

export const termsOf = (stored: StoredTerms): OrderTerms => ({
  ...stored,
  expiresAt: stored.expiresAt === null ? null : new Date(stored.expiresAt),
  priceMicros: units(stored.priceMicros),
  sizeUnits: units(stored.sizeUnits),
  allInUnits: units(stored.allInUnits),
  maxFeeUnits: units(stored.maxFeeUnits),
})

export type OrderStepName = 'sign' | 'submit' | 'settle'
export type OrderTask = TaskView<OrderTaskData>
export type OrderStepResult = StepResultOf<Partial<OrderTaskData>, OrderStepName>
