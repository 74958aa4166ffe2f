import { type Phase, requirePhase, sumFills } from '#engines/venue/records/bracket.ts'
import { isAnyAdopted } from '#engines/venue/records/order-store.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { subtractDecimals, toFixedPoint } from '#kernel/money/money.ts'
import type { Queryable } from '#store/query.ts'
import type {
  Account,
  Fill,
  Hyperliquid,
  OpenOrder,
  OrderState,
  Position,
} from '#upstreams/hyperliquid/hyperliquid.ts'

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

/** The page size of the venue's recent fills; on a full page, an absent fill may be older. */
const recentFillsMax = 2_000
const recordsDisagree = () =>
  new Fault('unavailable', 'The records of the venue are not consistent yet; try again in a second', {
    extras: { retry_after: 1 },
  })

/** Returns the position in a market. Throws if the venue may show it in an unknown format. */
export function positionOf({ positions, unread }: Account, symbol: string): Position | undefined {
  const found = positions.find((each) => each.symbol === symbol)
  if (found || !unread.some((each) => each === null || each === symbol)) return found
  throw new Fault('unavailable', `Hyperliquid shows the position in ${symbol} in an unknown format`)
}

export const sizeOf = (account: Account, symbol: string): string =>
  positionOf(account, symbol)?.signedSize ?? '0'

/** Returns the signed size of the position after a fill. */
export const sizeAfter = ({ startSize, isBuy, size }: Fill): bigint =>
  toFixedPoint(startSize) + (isBuy ? toFixedPoint(size) : -toFixedPoint(size))

/** The account and market to read; `sinceMs` is the time of a fill that is known to exist. */
type ConsistencyQuery = { account: string; symbol: string; sinceMs?: number }

/** Returns the account and the newest fills, and throws while the fills do not match the position. */
export async function consistentRecord(
  venue: Pick<Hyperliquid, 'recentFills' | 'account'>,
  { account, symbol, sinceMs = 0 }: ConsistencyQuery,
): Promise<{ state: Account; fills: Fill[] }> {
  const [fills, state] = await Promise.all([venue.recentFills(account), venue.account(account)])
  const seen = sizeOf(state, symbol)
  const own = fills.filter((each) => each.symbol === symbol)
  if (own.length === 0) {
    const isMissing = sinceMs > 0 || (fills.length < recentFillsMax && compareDecimals(seen, '0') !== 0)
    if (isMissing) throw recordsDisagree()
    return { state, fills }
  }
  const lastMs = Math.max(...own.map(({ atMs }) => atMs))
  if (lastMs < sinceMs) throw recordsDisagree()
  // Fills with the same timestamp have no order among themselves, so any of them may be the last.
  if (own.some((fill) => fill.atMs === lastMs && sizeAfter(fill) === toFixedPoint(seen)))
    return { state, fills }
  throw recordsDisagree()
}

/** Returns the position in a market; undefined only if the fills show none too, as a read may be stale. */
export async function findPosition(
  venue: Pick<Hyperliquid, 'recentFills' | 'account'>,
  { account, symbol }: Pick<ConsistencyQuery, 'account' | 'symbol'>,
  state: Account,
): Promise<Position | undefined> {
  const shown = positionOf(state, symbol)
  return shown ?? positionOf((await consistentRecord(venue, { account, symbol })).state, symbol)
}

/** The balance of a token when the task began, and the market of the task's orders. */
export type HeldBefore = { coin: string; market: string; total: string }

/** Throws if the balance moved in the order's direction and no fill explains it. */
export async function assertBalanceExplained(
  venue: Pick<Hyperliquid, 'spotBalances' | 'fillsSince'>,
  { account, sinceMs, isBuy }: { account: string; sinceMs: number; isBuy: boolean },
  { coin, market, total }: HeldBefore,
): Promise<void> {
  const [balances, fills] = await Promise.all([
    venue.spotBalances(account, [coin]),
    venue.fillsSince(account, sinceMs),
  ])
  const now = balances.find((each) => each.coin === coin)?.total ?? '0'
  const moved = compareDecimals(now, total)
  if ((isBuy ? moved > 0 : moved < 0) && !fills.some(({ symbol }) => symbol === market))
    throw recordsDisagree()
}
