import type { TaskView } from '#kernel/task.ts'
import type { LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { VenueActs, Verdict } from './act.ts'
import { type CancelOutcome, endOf } from './cancel.ts'
import { type EvidenceSource, gatherEvidence } from './order-evidence.ts'

/** One action that cancels several orders, and the end of each of them. */

export type CancelTarget = {
  order_id: number
  asset: number
  symbol: string
  /** What was left of it when the cancel was asked for. */
  left?: string
}
export type OrderCancelled = CancelTarget & CancelOutcome

type Question = {
  task: TaskView
  leg: string
  signal: AbortSignal
  account: string
  sinceMs: number
  targets: readonly CancelTarget[]
}

const cancelledNow: CancelOutcome = { status: 'canceled', isCancelled: true }
const stillOpen: CancelOutcome = { status: 'open', isCancelled: false }

export function settleCancels(
  { acts, venue }: { acts: VenueActs; venue: EvidenceSource },
  { task, leg, signal, account, sinceMs, targets }: Question,
): Promise<Verdict<OrderCancelled[]>> {
  const replied = new Map<number, CancelOutcome>()
  const outcomesOf = (ends: readonly CancelOutcome[]): OrderCancelled[] =>
    targets.map((target, at) => ({ ...target, ...ends[at]! }))
  return acts.settle<OrderCancelled[]>({
    task,
    leg,
    signal,
    read(legs: LegStatus[]) {
      if (legs.length !== targets.length) return undefined
      targets.forEach(({ order_id: orderId }, at) => {
        if (legs[at]?.is === 'accepted') replied.set(orderId, cancelledNow)
      })
      return replied.size === targets.length ? outcomesOf(targets.map(() => cancelledNow)) : undefined
    },
    async look({ allRecords, isLast }) {
      const evidence = gatherEvidence(venue, { account, sinceMs, allRecords })
      const ends = await Promise.all(
        targets.map(async ({ order_id: orderId, left }) => {
          const known = replied.get(orderId)
          return known ?? endOf(await evidence.find({ orderId }), { left, isLast })
        }),
      )
      const missing = ends.filter((end) => end === undefined).length
      if (missing > 0 && (!isLast || missing === ends.length)) return undefined
      return outcomesOf(ends.map((end) => end ?? stillOpen))
    },
  })
}

export const cancelView = ({ order_id: orderId, symbol, status, isCancelled }: OrderCancelled) => ({
  order_id: String(orderId),
  oid: String(orderId),
  asset: symbol,
  cancelled: isCancelled,
  venue_status: status,
})
