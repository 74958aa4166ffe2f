import type { FailedResult, JsonObject, StepResultOf } from '#kernel/task/task.ts'

/** How a cancel ends. A cancel that has ended an exit or sent a request has acted, whatever stops it later. */

export type CancelStep = 'begin' | 'list' | 'send'
export type CancelTaskData = {
  owner: string
  /** Orders at the venue; null until those of a market, of an outcome, or all are listed. */
  order_ids: string[] | null
  /** Exits that the gateway holds; null for those of a market, of an outcome, or all. */
  exit_ids: string[] | null
  market_id: string | null
  outcome_id: string | null
  /** Exits that have ended, and the orders of theirs that may be open. */
  ended_exits?: string[]
  exit_orders?: string[]
  /** Whether a request may have been sent: stored before the first one. */
  is_sent?: boolean
  /** The version of the task after which no request was sent that got no answer; see `isEverySendAnswered`. */
  answered_version?: number | null
  canceled?: string[]
  not_canceled?: Record<string, string>
  polls?: number
  progress?: JsonObject | null
}
export type CancelResult = StepResultOf<Partial<CancelTaskData>, CancelStep>

export const hasActed = ({ ended_exits = [], exit_orders = [], is_sent = false }: CancelTaskData): boolean =>
  is_sent || ended_exits.length > 0 || exit_orders.length > 0

/** Returns what has ended, and of everything else that was to end why it has not. */
export function cancelLists({
  order_ids: orders,
  exit_ids: exits,
  exit_orders: exitOrders = [],
  ended_exits: ended = [],
  is_sent: isSent = false,
  canceled = [],
  not_canceled: refused = {},
}: CancelTaskData) {
  const left = [...new Set([...(orders ?? []), ...exitOrders])].filter((id) => !canceled.includes(id))
  const why = isSent ? 'It is not known whether the venue has cancelled it' : 'The venue was not asked'
  const missing = (exits ?? []).filter((id) => !ended.includes(id))
  return {
    canceled: [...canceled, ...ended],
    not_canceled: {
      ...Object.fromEntries(left.map((id) => [id, refused[id] ?? why])),
      ...Object.fromEntries(missing.map((id) => [id, 'The exit has ended'])),
    },
  }
}

/** Returns a failure or a cancellation of the cancel itself; once it has acted it is `partial`, with the lists. */
export const withCancelLists = <Result extends Partial<FailedResult>>(
  end: Result,
  data: CancelTaskData,
): Result => (hasActed(data) ? { ...end, outcome: 'partial', result: cancelLists(data) } : end)
