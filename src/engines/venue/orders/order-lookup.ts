import { type Phase, requirePhase, sumFills } from '#engines/venue/records/bracket.ts'
import { isAnyAdopted } from '#engines/venue/records/order-store.ts'
import { subtractDecimals } from '#kernel/money/money.ts'
import type { Queryable } from '#store/query.ts'
import type { Fill, Hyperliquid, OpenOrder, OrderState } from '#upstreams/hyperliquid/hyperliquid.ts'
import { recordsDisagree } from './consistent-reads.ts'

/** Finds an order in the venue's records, which lag behind each other: absence from one of them proves nothing. */

export type OrderLookupSource = Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince'>
export type OrderRef = { cloid?: string; orderId?: number | null }
export type FoundOrder = {
  orderId: number
  /** `waiting` is an exit that waits for its entry; `filling` an order with fills that may still be open. */
  phase: Phase | 'waiting' | 'filling'
  status: string | null
  filledSize: string
  atMs: number
}
type Scope = { account: string; sinceMs: number; allRecords: boolean }
export type OrderLookup = { find(name: OrderRef): Promise<FoundOrder | undefined> }

/** The largest lag of any read at the venue: an action that executed just before its expiry is visible within it. */
export const readLagMs = 5_000
/** The most that the venue's clocks of accounts and of fills differ. */
export const clockToleranceMs = 1_000

const filledOf = ({ origSize, size }: OpenOrder): string => subtractDecimals(origSize, size)

function fromStatus({ order, status, atMs }: OrderState): FoundOrder {
  const phase = requirePhase(status)
  const filledSize = phase === 'filled' ? order.origSize : filledOf(order)
  return { orderId: order.orderId, phase, status, filledSize, atMs }
}

const fromOpenOrders = (order: OpenOrder): FoundOrder => ({
  orderId: order.orderId,
  phase: order.parentId === null ? 'open' : 'waiting',
  status: null,
  filledSize: filledOf(order),
  atMs: order.atMs,
})

const fromFills = (fills: readonly [Fill, ...Fill[]]): FoundOrder => ({
  orderId: fills[0].orderId,
  phase: 'filling',
  status: null,
  filledSize: sumFills(fills).size,
  atMs: Math.max(...fills.map(({ atMs }) => atMs)),
})

/** Creates look-ups of orders that read the venue's lists once for all orders. */
export function createOrderLookup(
  venue: OrderLookupSource,
  { account, sinceMs, allRecords }: Scope,
): OrderLookup {
  let lists: Promise<[OpenOrder[], Fill[]]> | undefined
  return {
    async find({ cloid, orderId }) {
      const name = cloid ?? orderId
      if (name === undefined || name === null) return undefined
      const known = await venue.order(account, name)
      if (known) return fromStatus(known)
      if (!allRecords) return undefined
      lists ??= Promise.all([
        venue.openOrders(account),
        venue.fillsSince(account, sinceMs - clockToleranceMs),
      ])
      const [open, fills] = await lists
      const isSame = (each: { cloid: string | null; orderId: number }) =>
        (cloid !== undefined && each.cloid === cloid) || each.orderId === orderId
      const listed = open.find(isSame)
      if (listed) return fromOpenOrders(listed)
      const [first, ...rest] = fills.filter(isSame)
      return first && fromFills([first, ...rest])
    },
  }
}

/**
 * Returns the time from which to read the records of an order that an earlier task of the same execution id
 * placed, or undefined if the venue has no order under any of the ids. Throws if the venue does not show an
 * order that it had before.
 */
export async function placedBefore<Data extends { account: string; since_ms: number }>(
  { venue, db }: { venue: Pick<OrderLookupSource, 'order'>; db: Queryable },
  { userId, data: { account, since_ms: sinceMs } }: { userId: string; data: Data },
  cloids: readonly string[],
): Promise<{ data: Partial<Data> } | undefined> {
  const orders = await Promise.all(cloids.map((cloid) => venue.order(account, cloid)))
  const times = orders.flatMap((known) => (known ? [known.order.atMs - clockToleranceMs] : []))
  if (times.length === 0) {
    // The venue sometimes denies an order that exists. If a search for unknown orders has found this order before, the
    // venue merely does not show it now.
    if (await isAnyAdopted(db, userId, cloids)) throw recordsDisagree()
    return undefined
  }
  const known = { since_ms: Math.min(sinceMs, ...times) }
  return { data: known as Partial<Data> }
}
