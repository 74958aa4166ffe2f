import type { PreparedOrder } from '#kernel/money/prediction-venue.ts'
import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne, jsonText, type Queryable, query } from '#store/query.ts'
import type { PredictionOrderRow, PredictionOrderStatus } from '#store/tables/predmkt.ts'
import type { AccountKey } from './account-store.ts'

/** The orders that tasks have signed, and what of cash and shares they lock. */

type NewOrder = AccountKey & {
  taskId: string
  leg: PredictionOrderRow['leg']
  entryOrderId: string | null
  prepared: PreparedOrder
  expiresAt: Date | null
  now: Date
}

/** Stores an order in the transaction that signs it. */
export async function noteOrder(tx: Tx, order: NewOrder): Promise<void> {
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

export type OrderChange = {
  orderId: string
  status: PredictionOrderStatus
  matchedUnits?: bigint
  /** Whether the order outlives its task, and then locks cash or shares by itself. */
  rests?: boolean
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

/** Stores the state of an order. An order that has ended does not change any more. */
export async function changeOrder(
  db: Queryable,
  { orderId, status, matchedUnits, rests, now }: OrderChange,
): Promise<boolean> {
  const rows = await query(
    db,
    `update prediction_order set status = $2, matched = coalesce($3::numeric, matched),
       rests = coalesce($4, rests), ended_at = case when $5 then $6::timestamptz end
     where order_id = $1 and ended_at is null
       and (status <> $2 or matched <> coalesce($3::numeric, matched) or rests <> coalesce($4, rests))
     returning order_id`,
    [
      orderId,
      status,
      matchedUnits === undefined ? null : String(matchedUnits),
      rests ?? null,
      isEndStatus(status),
      now,
    ],
  )
  return rows.length > 0
}

/** The venue sells nothing smaller, so that less is left of no purchase. */
export const leastUnits = 10_000n

const unsettled = `settlement not in ('confirmed', 'failed')`

/** An exit has no hold in the ledger, so its order locks the shares from its signature on. */
const locksShares = `(o.rests or o.leg <> 'order')`

/** Cash that purchases lock whose task has ended: the open rest of each, and its matches that are not settled. */
export async function restingCash(db: Queryable, { userId, venue }: AccountKey): Promise<bigint> {
  const [row] = await query<{ units: string }>(
    db,
    `select coalesce((select sum(ceil(making * (size - matched) / size)) from prediction_order
         where user_id = $1 and venue = $2 and side = 'buy' and rests and ended_at is null), 0)
       + coalesce((select sum(f.cash + f.fee) from prediction_fill f join prediction_order o using (order_id)
         where f.user_id = $1 and f.venue = $2 and f.side = 'buy' and o.rests and f.${unsettled}), 0) as units`,
    [userId, venue],
  )
  return BigInt(row?.units ?? 0)
}

export async function restingShares(
  db: Queryable,
  { userId, venue }: AccountKey,
  outcomeId: string,
): Promise<bigint> {
  const [row] = await query<{ units: string }>(
    db,
    `select coalesce((select sum(size - matched) from prediction_order o
         where user_id = $1 and venue = $2 and outcome_id = $3 and side = 'sell' and ${locksShares}
           and ended_at is null), 0)
       + coalesce((select sum(f.size) from prediction_fill f join prediction_order o using (order_id)
         where f.user_id = $1 and f.venue = $2 and f.outcome_id = $3 and f.side = 'sell' and ${locksShares}
           and f.${unsettled}), 0) as units`,
    [userId, venue, outcomeId],
  )
  return BigInt(row?.units ?? 0)
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

/** What the exits of a purchase have sold or are selling; a match that failed has sold nothing. */
export async function soldOfEntry(
  db: Queryable,
  entryOrderId: string,
): Promise<{ soldUnits: bigint; isSettling: boolean }> {
  const [row] = await query<{ units: string; is_settling: boolean }>(
    db,
    // The venue lists a match a little after it counts it, and may take one back that failed.
    `select coalesce(sum(greatest(o.matched, f.listed) - f.failed), 0) as units,
       coalesce(bool_or(greatest(o.matched, f.listed) > f.final), false) as is_settling
     from prediction_order o cross join lateral (
       select coalesce(sum(size), 0) as listed,
         coalesce(sum(size) filter (where settlement = 'failed'), 0) as failed,
         coalesce(sum(size) filter (where settlement in ('confirmed', 'failed')), 0) as final
       from prediction_fill where order_id = o.order_id) f
     where o.entry_order_id = $1`,
    [entryOrderId],
  )
  return { soldUnits: BigInt(row?.units ?? 0), isSettling: row?.is_settling ?? false }
}
