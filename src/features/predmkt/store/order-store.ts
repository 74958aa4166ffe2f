import { leastUnits } from '#features/predmkt/exit-rules.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { PreparedOrder } from '#kernel/money/prediction-venue.ts'
import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne, jsonText, type Queryable, query } from '#store/query.ts'
import type { PredictionOrderRow, PredictionOrderStatus } from '#store/tables/predmkt.ts'
import { type AccountKey, lockAccount } from './account-store.ts'

/** The orders that tasks have signed, and what of cash and shares they lock. */

const unsettled = `settlement not in ('confirmed', 'failed')`

/**
 * So long after its end an order counts as listed although its trades are less than its match by no more than rounding; an
 * order that rests, so long after its signature.
 */
const overdueMs = 5 * 60_000

/** Whether the trades of an order should have been listed long ago. */
export const isOverdue = (
  { ended_at, at }: Pick<PredictionOrderRow, 'ended_at' | 'at'>,
  now: Date,
): boolean => now.getTime() - (ended_at ?? at).getTime() >= overdueMs

/** What the trades of an order may lack to count as all of its match, by the parameter of the present time. */
const lacking = (order: string, now: string) => `(case when coalesce(${order}.ended_at, ${order}.at)
  <= ${now}::timestamptz - interval '${overdueMs} milliseconds' then ${leastUnits - 1n} else 0 end)`

type NewOrder = AccountKey & {
  taskId: string
  /** When the task was accepted. */
  acceptedAt: Date
  leg: PredictionOrderRow['leg']
  entryOrderId: string | null
  prepared: PreparedOrder
  expiresAt: Date | null
  now: Date
}

/** Why an order is not signed that a cancel covers. */
export const coveredByCancel = 'covered_by_cancel'

/** Refuses to sign an order whose task was accepted before a cancel of everything, of its market or of its outcome. */
async function assertNoCancel(tx: Tx, { userId, venue, taskId, acceptedAt, prepared }: NewOrder) {
  // A cancel stores what it ends under the same lock.
  await lockAccount(tx, { userId, venue })
  const { market, action } = prepared
  const cancels = await query(
    tx,
    `select 1 from task where user_id = $1 and kind = 'predmkt_cancel' and id > $2 and created_at > $3
       and data ? 'ended_exits' and data ->> 'exit_ids' is null
       and coalesce(data ->> 'market_id', $4) = $4 and coalesce(data ->> 'outcome_id', $5) = $5 limit 1`,
    [userId, taskId, acceptedAt, market.marketId, action.outcomeId],
  )
  if (cancels.length > 0)
    throw new Fault('conflict', 'The order was cancelled before it was signed', {
      extras: { reason: coveredByCancel },
    })
}

/** Stores an order in the transaction that signs it. */
export async function noteOrder(tx: Tx, order: NewOrder): Promise<void> {
  await assertNoCancel(tx, order)
  const { userId, venue, taskId, leg, entryOrderId, prepared, expiresAt, now } = order
  const { action, market, orderId, priceMicros, sizeUnits, timeInForce } = prepared
  await query(
    tx,
    `insert into prediction_order (order_id, user_id, venue, task_id, leg, market_id, outcome_id, outcome, title,
       protocol, neg_risk, side, order_type, price, size, making, taking, fee, status, expires_at, at, entry_order_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, 'signed', $19, $20, $21)
     on conflict (order_id) do nothing`,
    [
      orderId,
      userId,
      venue,
      taskId,
      leg,
      market.marketId,
      action.outcomeId,
      market.outcomes.find(({ outcomeId }) => outcomeId === action.outcomeId)?.label ?? '',
      market.question,
      market.protocol,
      market.isNegRisk,
      action.side,
      timeInForce,
      priceMicros,
      String(sizeUnits),
      String(action.makerUnits),
      String(action.takerUnits),
      market.fee === null ? null : jsonText(market.fee),
      expiresAt,
      now,
      entryOrderId,
    ],
  )
}

export const orderRow = (db: Queryable, orderId: string): Promise<PredictionOrderRow | undefined> =>
  fetchOne(db, builder.selectFrom('prediction_order').selectAll().where('order_id', '=', orderId))

export const openOrderRows = (db: Queryable, { userId, venue }: AccountKey): Promise<PredictionOrderRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('prediction_order')
      .selectAll()
      .where('user_id', '=', userId)
      .where('venue', '=', venue)
      .where('ended_at', 'is', null)
      .where('status', '<>', 'signed')
      .orderBy('at', 'desc'),
  )

/**
 * The orders that are compared with the venue: those that outlive their tasks, and those that have ended while what the
 * venue shows of them can still change here.
 */
export const followedOrders = (db: Queryable, { userId, venue }: AccountKey): Promise<PredictionOrderRow[]> =>
  query(
    db,
    `select * from prediction_order o where user_id = $1 and venue = $2 and followed and (rests or not exists
       (select from task where id = o.task_id and status in ('pending', 'running'))) order by at desc`,
    [userId, venue],
  )

/** Whether an order has matches whose trades the venue has not listed yet. */
export async function hasUnlistedTrades(
  db: Queryable,
  { userId, venue }: AccountKey,
  now: Date,
): Promise<boolean> {
  const rows = await query(
    db,
    `select 1 from prediction_order o where user_id = $1 and venue = $2 and followed
       and matched > ${lacking('o', '$3')} +
         (select coalesce(sum(size), 0) from prediction_fill where order_id = o.order_id) limit 1`,
    [userId, venue, now],
  )
  return rows.length > 0
}

/** Notes that orders of an owner end because somebody has asked for it, before the venue is asked. */
export async function noteCancelAsked(
  db: Queryable,
  { userId, venue }: AccountKey,
  orderIds: readonly string[],
): Promise<void> {
  await query(
    db,
    `update prediction_order set cancel_asked = true
     where order_id = any($1) and user_id = $2 and venue = $3 and not cancel_asked`,
    [orderIds, userId, venue],
  )
}

/** What a cancel covers that names no orders; null means any. */
export type CancelScope = { marketId: string | null; outcomeId: string | null }

/** Notes the same of the orders that are not known to be at the venue: their tasks do not send them any more. */
export async function noteSignedUnwanted(
  db: Queryable,
  { userId, venue }: AccountKey,
  { marketId, outcomeId }: CancelScope,
): Promise<void> {
  await query(
    db,
    `update prediction_order set cancel_asked = true
     where user_id = $1 and venue = $2 and status = 'signed' and ended_at is null and not cancel_asked
       and ($3::text is null or market_id = $3) and ($4::text is null or outcome_id = $4)`,
    [userId, venue, marketId, outcomeId],
  )
}

export type OrderChange = {
  orderId: string
  /** Whose order it has to be: an id that a person has named may be that of an order of somebody else. */
  owner?: AccountKey
  status: PredictionOrderStatus
  matchedUnits?: bigint
  /** Whether the order outlives its task, and then locks cash or shares by itself. */
  rests?: boolean
  /**
   * Whether the order has ended, and what matched before was not read since. Without any count of it the order locks
   * what it did, and its end is stored once it is read.
   */
  isUnread?: boolean
  now: Date
}
const endStatuses: readonly PredictionOrderStatus[] = [
  'matched',
  'cancelled',
  'expired',
  'unmatched',
  'rejected',
  'resolved',
]
export const isEndStatus = (status: PredictionOrderStatus): boolean => endStatuses.includes(status)

/** After so many readings without the order, and so long after the first of them, it counts as ended. */
const missesMax = 5
export const lostAfterMs = 5 * 60_000
/** A lost order that the venue lists again within this time is open again. */
export const returnsWithinMs = 24 * 3_600_000

/** Whether the venue has not known the order for so long that it counts as ended. */
export const isLost = (
  { misses, missing_since: since }: Pick<PredictionOrderRow, 'misses' | 'missing_since'>,
  now: Date,
): boolean => misses >= missesMax && since !== null && now.getTime() - since.getTime() >= lostAfterMs

/** `isLost` of the row before its change. */
const wasLost = `(p.misses >= ${missesMax}
  and p.missing_since <= $6::timestamptz - interval '${lostAfterMs} milliseconds')`

/**
 * Stores the state of an order, and returns whether this has ended it. An end is final, unless the order was lost and
 * the venue lists it again; what has matched only grows. The order is followed until its trades are listed and settled.
 */
export async function changeOrder(
  db: Queryable,
  { orderId, owner, status, matchedUnits, rests, isUnread = false, now }: OrderChange,
): Promise<boolean> {
  const rows = await query<{ has_ended: boolean }>(
    db,
    `update prediction_order o set status = case when b.is_open then $2 else o.status end, matched = b.matched,
       rests = coalesce($4, o.rests), followed = b.followed, missing_since = null, misses = 0,
       ended_at = case when not b.is_open then o.ended_at when $5 then coalesce(o.ended_at, $6::timestamptz) end
     from (select p.order_id, p.ended_at is null as was_open, p.ended_at is null or ${wasLost} as is_open,
         m.matched, case when not $5 or $7 then p.followed or ${wasLost}
           else coalesce(f.final, 0) + ${lacking('p', '$6')} < m.matched or coalesce(f.is_open, false) end as followed
       from prediction_order p
       cross join lateral (select greatest(p.matched, coalesce($3::numeric, p.matched)) as matched) m
       cross join lateral (select bool_or(${unsettled}) as is_open,
         sum(size) filter (where settlement in ('confirmed', 'failed')) as final
         from prediction_fill where order_id = p.order_id and $5) f
       where p.order_id = $1 and p.user_id = coalesce($8::uuid, p.user_id)
         and p.venue = coalesce($9::text, p.venue) for update of p) b
     where o.order_id = b.order_id and (o.matched <> b.matched or o.followed <> b.followed or o.misses > 0
       or (b.is_open and (o.status <> $2 or o.rests <> coalesce($4, o.rests))))
     returning b.was_open and o.ended_at is not null as has_ended`,
    [
      orderId,
      status,
      matchedUnits === undefined ? null : String(matchedUnits),
      rests ?? null,
      isEndStatus(status) && !(isUnread && matchedUnits === undefined),
      now,
      isUnread,
      owner?.userId ?? null,
      owner?.venue ?? null,
    ],
  )
  return rows[0]?.has_ended ?? false
}

/** Notes that the venue does not know an order, and returns whether this has ended it. */
export async function noteMissed(db: Queryable, row: PredictionOrderRow, now: Date): Promise<boolean> {
  const missed = { misses: row.misses + 1, missing_since: row.missing_since ?? now }
  const isGone = isLost(missed, now)
  const endedAt = row.ended_at ?? (isGone ? now : null)
  const isForgotten = endedAt !== null && isGone && now.getTime() - endedAt.getTime() >= returnsWithinMs
  const rows = await query(
    db,
    `update prediction_order set misses = $2, missing_since = $3, followed = $4, ended_at = $5,
       status = case when ended_at is null and $5::timestamptz is not null then 'cancelled' else status end
     where order_id = $1 and misses = $6 and followed returning order_id`,
    [row.order_id, missed.misses, missed.missing_since, !isForgotten, endedAt, row.misses],
  )
  return rows.length > 0 && row.ended_at === null && endedAt !== null
}

/** An exit has no hold in the ledger, so its order locks the shares from its signature on. */
const locksShares = `(o.rests or o.leg <> 'order')`

/** What of an order has no trade yet: its open rest, and matches that the venue has not listed. */
const unlisted = `greatest(case when o.ended_at is null then o.size else o.matched end - coalesce(
  (select sum(f.size) from prediction_fill f where f.order_id = o.order_id), 0), 0)`
const isCounted = '(o.ended_at is null or o.followed)'

/** Cash that purchases lock whose task has ended: what of them has no trade yet, and trades that are not settled. */
export async function restingCash(db: Queryable, { userId, venue }: AccountKey): Promise<bigint> {
  const [row] = await query<{ units: string }>(
    db,
    `select coalesce((select sum(ceil(making * ${unlisted} / size
           * (1 + coalesce((fee #>> '{builder,makerBps}')::numeric, 0) / 10000))) from prediction_order o
         where user_id = $1 and venue = $2 and side = 'buy' and rests and ${isCounted}), 0)
       + coalesce((select sum(f.cash + f.fee) from prediction_fill f join prediction_order o using (order_id)
         where f.user_id = $1 and f.venue = $2 and f.side = 'buy' and o.rests and f.${unsettled}), 0) as units`,
    [userId, venue],
  )
  return BigInt(row?.units ?? 0)
}

type LockedShares = {
  units: bigint
  /** Those of them that are not in the book: the chain may show that they have left already. */
  leavingUnits: bigint
}

/** Shares that sales lock, as `restingCash` counts cash. */
export async function lockedShares(
  db: Queryable,
  { userId, venue }: AccountKey,
  outcomeId: string,
): Promise<LockedShares> {
  const [row] = await query<{ unlisted: string; in_book: string; unsettled: string }>(
    db,
    `select coalesce(sum(u.units), 0) as unlisted,
         coalesce(sum(least(u.units, o.size - o.matched))
           filter (where o.order_type in ('gtc', 'gtd') and o.ended_at is null), 0) as in_book,
         coalesce((select sum(f.size) from prediction_fill f join prediction_order o using (order_id)
           where f.user_id = $1 and f.venue = $2 and f.outcome_id = $3 and f.side = 'sell' and ${locksShares}
             and f.${unsettled}), 0) as unsettled
       from prediction_order o cross join lateral (select ${unlisted} as units) u
       where user_id = $1 and venue = $2 and outcome_id = $3 and side = 'sell' and ${locksShares} and ${isCounted}`,
    [userId, venue, outcomeId],
  )
  const units = BigInt(row?.unlisted ?? 0) + BigInt(row?.unsettled ?? 0)
  return { units, leavingUnits: units - BigInt(row?.in_book ?? 0) }
}

/** Bought shares whose settlement is not confirmed. */
export async function unsettledOf(
  db: Queryable,
  { userId, venue }: AccountKey,
  outcomeId: string,
): Promise<bigint> {
  const [row] = await query<{ units: string }>(
    db,
    `select coalesce(sum(size), 0) as units from prediction_fill
     where user_id = $1 and venue = $2 and outcome_id = $3 and side = 'buy' and ${unsettled}`,
    [userId, venue, outcomeId],
  )
  return BigInt(row?.units ?? 0)
}
