import type { LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type CancelOutcome, cancelOutcomeOf } from './cancel.ts'
import { createOrderLookup, type OrderLookupSource } from './order-lookup.ts'
import type { ActionSearch } from './venue-effect.ts'

/** Cancels several orders with one action, with an outcome per order. */

export type CancelTarget = {
  order_id: number
  asset: number
  symbol: string
  /** The open size of the order when its cancel was requested. */
  left?: string
}
export type OrderCancelled = CancelTarget & CancelOutcome

type CancelBatch = { account: string; sinceMs: number; targets: readonly CancelTarget[] }

const cancelledNow: CancelOutcome = { status: 'canceled', isCancelled: true }
const stillOpen: CancelOutcome = { status: 'open', isCancelled: false }

export function cancelSearch(
  venue: OrderLookupSource,
  { account, sinceMs, targets }: CancelBatch,
): ActionSearch<OrderCancelled[]> {
  const replied = new Map<number, CancelOutcome>()
  const outcomesOf = (endings: readonly CancelOutcome[]): OrderCancelled[] =>
    targets.map((target, at) => ({ ...target, ...endings[at]! }))
  return {
    parseReply(legs: LegStatus[]) {
      if (legs.length !== targets.length) return undefined
      targets.forEach(({ order_id: orderId }, at) => {
        if (legs[at]?.type === 'accepted') replied.set(orderId, cancelledNow)
      })
      return replied.size === targets.length ? outcomesOf(targets.map(() => cancelledNow)) : undefined
    },
    async lookUp({ allRecords, isLast }) {
      const evidence = createOrderLookup(venue, { account, sinceMs, allRecords })
      const endings = await Promise.all(
        targets.map(async ({ order_id: orderId, left }) => {
          const known = replied.get(orderId)
          return known ?? cancelOutcomeOf(await evidence.find({ orderId }), { left, isLast })
        }),
      )
      const missing = endings.filter((ending) => ending === undefined).length
      if (missing > 0 && (!isLast || missing === endings.length)) return undefined
      return outcomesOf(endings.map((ending) => ending ?? stillOpen))
    },
  }
}

export const cancelView = ({ order_id: orderId, symbol, status, isCancelled }: OrderCancelled) => ({
  order_id: String(orderId),
  oid: String(orderId),
  asset: symbol,
  cancelled: isCancelled,
  venue_status: status,
})
