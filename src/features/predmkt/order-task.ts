import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
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
  /** What the order counts to the limits of the policy. */
  counted_units: string
  exits?: ExitTerms[]
  order_id?: string
  market_id?: string
  /** What the venue answered to the order, or says of it. */
  order_status?: string
  /** How long the market delays the match of an order that crosses the book. */
  match_delay_ms?: number
  /** When a delayed order that is open and has no match rests. */
  delayed_until_ms?: number
  trade_ids?: string[]
  tx_hashes?: string[]
  making_units?: string
  taking_units?: string
  protocol?: string
  /** Whether an order that never rested was replaced by another one. */
  is_renewed?: boolean
  /** Whether bytes are signed that may have been sent; such a task is not cancellable. */
  is_signed?: boolean
  /** The version of the task in whose step the venue had refused every send of the order so far. */
  answered_version?: number | null
  /** When the order was last sent without an answer. */
  unknown_since?: string | null
  /** Why the venue refused the order's bytes after a send without an answer. */
  refusal?: { code: string; message: string } | null
  /** Whether the venue has said that it has the order already. */
  is_duplicate?: boolean
  /** Whether an order of before was looked up, and none was found. */
  looked_up?: boolean
  /** Whether the order is one of before: its money had left the wallet before the balance was read. */
  was_found?: boolean
  /** Whether the order was cancelled before it was known to be at the venue; a step has this for itself alone. */
  is_unwanted?: boolean
  sought?: null
  /** Whether the venue was asked once to read the chain again. */
  is_refreshed?: boolean
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
  boundMicros: text(terms.boundMicros),
  sizeUnits: text(terms.sizeUnits),
  allInUnits: text(terms.allInUnits),
  maxFeeUnits: text(terms.maxFeeUnits),
})

export const termsOf = (stored: StoredTerms): OrderTerms => ({
  ...stored,
  expiresAt: stored.expiresAt === null ? null : new Date(stored.expiresAt),
  priceMicros: units(stored.priceMicros),
  boundMicros: units(stored.boundMicros),
  sizeUnits: units(stored.sizeUnits),
  allInUnits: units(stored.allInUnits),
  maxFeeUnits: units(stored.maxFeeUnits),
})

export type OrderStepName = 'sign' | 'submit' | 'settle'
export type OrderTask = TaskView<OrderTaskData>
export type OrderStepResult = StepResultOf<Partial<OrderTaskData>, OrderStepName>
