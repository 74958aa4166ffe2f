import { setTimeout as pause } from 'node:timers/promises'
import { isVenueOrderId } from '#engines/venue/records/order-store.ts'
import { recentTasks } from '#engines/venue/records/recent-tasks-sql.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { toFixedPoint } from '#kernel/money/money.ts'
import type { BalanceAttempt } from '#kernel/task/admission.ts'
import { type Queryable, query } from '#store/query.ts'
import type { Account, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { consistentRecord, sizeOf } from './consistent-reads.ts'
import { readLagMs } from './order-lookup.ts'
import { SpendingNotShown } from './pending-spends.ts'
import type { PositionAfter } from './position-after-fills.ts'

/** Gives admissions read-your-writes, because a read of the venue may be older than the user's last task. */

/** The waits before each further read of a stale account; each read may reach another node of the venue. */
const rereadWaitsMs = [150, 300, 600] as const
/** A read of the venue rarely lags longer than this. */
export const usualLagMs = rereadWaitsMs.reduce((sum: number, ms) => sum + ms, 0)

type TaskDeps = { db: Queryable; clock: Clock }

async function lastPositionOf(
  { db, clock }: TaskDeps,
  userId: string,
  symbol: string,
): Promise<PositionAfter | undefined> {
  const now = clock.now()
  const rows = await query<{ after: PositionAfter }>(
    db,
    `with ${recentTasks} select data -> 'position_after' as after from recent
     where data ->> 'market' = 'perp' and data ->> 'symbol' = $3 and data ? 'position_after'`,
    [userId, later(now, -readLagMs), symbol],
  )
  return rows
    .map(({ after }) => after)
    .reduce<PositionAfter | undefined>(
      (last, each) => (last && last.at_ms > each.at_ms ? last : each),
      undefined,
    )
}

type AccountDeps = TaskDeps & { venue: Pick<Hyperliquid, 'account' | 'recentFills'> }
type Wanted = { userId: string; account: string; symbol: string }

/** Returns the account as recent as the user's last task in the market, or throws `unavailable` while it is older. */
export async function accountAfterTasks(
  { db, clock, venue }: AccountDeps,
  { userId, account, symbol }: Wanted,
): Promise<Account> {
  const [first, expected] = await Promise.all([
    venue.account(account),
    lastPositionOf({ db, clock }, userId, symbol),
  ])
  if (!expected) return first
  const shows = (state: Account): boolean =>
    toFixedPoint(sizeOf(state, symbol)) === toFixedPoint(expected.signed_size)
  let state = first
  for (const waitMs of rereadWaitsMs) {
    if (shows(state)) return state
    await pause(waitMs)
    state = await venue.account(account)
  }
  // The read does not show the position that the last task left; an exit, a resting order or another client may have
  // changed it.
  if (shows(state)) return state
  return (await consistentRecord(venue, { account, symbol, sinceMs: expected.at_ms })).state
}

const changedRecently = async ({ db, clock }: TaskDeps, userId: string): Promise<boolean> => {
  const now = clock.now()
  const rows = await query(
    db,
    `with ${recentTasks} select 1 from recent
     where outcome in ('executed', 'partial') and (kind like 'perp_%' or kind like 'spot_%') limit 1`,
    [userId, later(now, -readLagMs)],
  )
  return rows.length > 0
}

/** Whether a task of the user bought the token within the read lag, so that a read may not show it. */
export async function boughtRecently(
  { db, clock }: TaskDeps,
  userId: string,
  symbol: string,
): Promise<boolean> {
  const now = clock.now()
  const rows = await query(
    db,
    `with ${recentTasks} select 1 from recent
     where outcome in ('executed', 'partial') and kind = 'spot_buy' and data ->> 'symbol' = $3 limit 1`,
    [userId, later(now, -readLagMs), symbol],
  )
  return rows.length > 0
}

/** Returns the orders that the user's tasks cancelled within the read lag; the open orders may still list them. */
export async function recentlyCancelled({ db, clock }: TaskDeps, userId: string): Promise<Set<number>> {
  const now = clock.now()
  const rows = await query<{ id: string | null }>(
    db,
    `with ${recentTasks}
     select result ->> 'order_id' as id from recent where result ->> 'venue_status' = 'canceled'
     union
     select jsonb_path_query(result, '$.*[*] ? (@.cancelled == true).order_id') #>> '{}' from recent`,
    [userId, later(now, -readLagMs)],
  )
  return new Set(rows.flatMap(({ id }) => (id !== null && isVenueOrderId(id) ? [Number(id)] : [])))
}

/** Repeats an admission that fails for insufficient balance, if a recent task of the user moved money. */
export async function rereadBalances<T>(
  deps: TaskDeps,
  userId: string,
  admit: (attempt: BalanceAttempt) => Promise<T>,
): Promise<T> {
  for (const waitMs of rereadWaitsMs) {
    try {
      return await admit({ isLast: false })
    } catch (shortage) {
      const isShort = shortage instanceof Fault && shortage.code === 'insufficient_balance'
      const mayChange =
        shortage instanceof SpendingNotShown || (isShort && (await changedRecently(deps, userId)))
      if (!mayChange) throw shortage
    }
    await pause(waitMs)
  }
  return admit({ isLast: true })
}
