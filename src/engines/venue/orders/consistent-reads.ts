import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { toFixedPoint } from '#kernel/money/money.ts'
import type { Account, Fill, Hyperliquid, Position } from '#upstreams/hyperliquid/hyperliquid.ts'

/** Reads a position or a balance together with the fills that explain it, because the venue's reads may be stale. */

/** The page size of the venue's recent fills; on a full page, an absent fill may be older. */
const recentFillsMax = 2_000
export const recordsDisagree = () =>
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
