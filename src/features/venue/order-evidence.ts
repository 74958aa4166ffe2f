import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { fromUnits, toUnits } from '#kernel/money.ts'
import type {
  Account,
  Fill,
  Hyperliquid,
  OpenOrder,
  OrderState,
  Position,
} from '#upstreams/hyperliquid/hyperliquid.ts'
import { knownPhase, type Phase, sumOf } from './bracket.ts'

/**
 * What became of an order, from each record of the venue that can show it: its status, the open orders, the fills.
 * The records lag behind each other, so that one of them that shows nothing proves nothing.
 */

export type EvidenceSource = Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince'>
/** By the id that we gave it, or by the one that the venue gave it. */
export type OrderName = { cloid?: string; orderId?: number | null }
export type OrderFound = {
  orderId: number
  /** `waiting`: for its entry. `filling`: it has fills, and no record says whether it is still open. */
  phase: Phase | 'waiting' | 'filling'
  /** The venue's own word, where its status is known. */
  status: string | null
  filledSize: string
  atMs: number
}
type Scope = { account: string; sinceMs: number; allRecords: boolean }
export type Evidence = { find(name: OrderName): Promise<OrderFound | undefined> }

/** More than the clocks that stamp accounts and fills can be apart. */
export const clockErrorMs = 1_000

const scale = 18
const units = (text: string) => toUnits(text, scale)

const filledOf = ({ origSize, size }: OpenOrder): string => fromUnits(units(origSize) - units(size), scale)

function byStatus({ order, status, atMs }: OrderState): OrderFound {
  const phase = knownPhase(status)
  const filledSize = phase === 'filled' ? order.origSize : filledOf(order)
  return { orderId: order.orderId, phase, status, filledSize, atMs }
}

const byList = (order: OpenOrder): OrderFound => ({
  orderId: order.orderId,
  phase: order.parentId === null ? 'open' : 'waiting',
  status: null,
  filledSize: filledOf(order),
  atMs: order.atMs,
})

const byFills = (fills: readonly [Fill, ...Fill[]]): OrderFound => ({
  orderId: fills[0].orderId,
  phase: 'filling',
  status: null,
  filledSize: sumOf(fills).size,
  atMs: Math.max(...fills.map(({ atMs }) => atMs)),
})

/** The lists are read once for all orders that are asked about. */
export function gatherEvidence(venue: EvidenceSource, { account, sinceMs, allRecords }: Scope): Evidence {
  let lists: Promise<[OpenOrder[], Fill[]]> | undefined
  return {
    async find({ cloid, orderId }) {
      const name = cloid ?? orderId
      if (name === undefined || name === null) return undefined
      const known = await venue.order(account, name)
      if (known) return byStatus(known)
      if (!allRecords) return undefined
      lists ??= Promise.all([venue.openOrders(account), venue.fillsSince(account, sinceMs - clockErrorMs)])
      const [open, fills] = await lists
      const isSame = (each: { cloid: string | null; orderId: number }) =>
        (cloid !== undefined && each.cloid === cloid) || each.orderId === orderId
      const listed = open.find(isSame)
      if (listed) return byList(listed)
      const [first, ...rest] = fills.filter(isSame)
      return first && byFills([first, ...rest])
    },
  }
}

/** As many as the venue gives in one answer: what is not among them may be older. */
const recentFillsMax = 2_000
const contradiction = () =>
  new Fault('unavailable', 'The records of the venue do not agree yet', { extras: { retry_after: 1 } })

/** Throws where the venue may show the position in a form that is not known. */
export function positionOf({ positions, unread }: Account, symbol: string): Position | undefined {
  const found = positions.find((each) => each.symbol === symbol)
  if (found || !unread.some((each) => each === null || each === symbol)) return found
  throw new Fault('unavailable', `Hyperliquid shows the position in ${symbol} in a form that is not known`)
}

export const sizeOf = (account: Account, symbol: string): string =>
  positionOf(account, symbol)?.signedSize ?? '0'

/** Signed: what is held after the fill. */
export const sizeAfter = ({ startSize, isBuy, size }: Fill): bigint =>
  units(startSize) + (isBuy ? units(size) : -units(size))

/** `sinceMs`: of a fill that is known to be there. */
type Agreeing = { account: string; symbol: string; sinceMs?: number }

/** The account, and the newest fills, which explain its position; throws as long as both tell different things. */
export async function agreedRecord(
  venue: Pick<Hyperliquid, 'recentFills' | 'account'>,
  { account, symbol, sinceMs = 0 }: Agreeing,
): Promise<{ state: Account; fills: Fill[] }> {
  const [fills, state] = await Promise.all([venue.recentFills(account), venue.account(account)])
  const seen = sizeOf(state, symbol)
  const own = fills.filter((each) => each.symbol === symbol)
  if (own.length === 0) {
    const isMissing = sinceMs > 0 || (fills.length < recentFillsMax && compareDecimals(seen, '0') !== 0)
    if (isMissing) throw contradiction()
    return { state, fills }
  }
  const lastMs = Math.max(...own.map(({ atMs }) => atMs))
  if (lastMs < sinceMs) throw contradiction()
  // Fills of one moment have no order among themselves.
  if (own.some((fill) => fill.atMs === lastMs && sizeAfter(fill) === units(seen))) return { state, fills }
  throw contradiction()
}

/** The signed size that account and fills agree on. */
export const agreedPosition = async (
  venue: Pick<Hyperliquid, 'recentFills' | 'account'>,
  account: string,
  symbol: string,
): Promise<string> => sizeOf((await agreedRecord(venue, { account, symbol })).state, symbol)

/** A token that was held when the task began, in the market of its orders. */
export type HeldBefore = { coin: string; market: string; total: string }

/** Throws where the balance moved as the order would move it, and no fill explains that. */
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
  if ((isBuy ? moved > 0 : moved < 0) && !fills.some(({ symbol }) => symbol === market)) throw contradiction()
}
