import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import type { PredictionRedemptionRow, PredictionTransferRow } from '#store/tables/predmkt.ts'
import type { AccountKey } from './account-store.ts'

/** Payouts of resolved markets, and money between the user's wallets and the funded wallet. */

export type NewRedemption = AccountKey & {
  taskId: string | null
  marketId: string
  outcomeId: string
  title: string
  sharesUnits: bigint
  payoutUnits: bigint
  txHash: string
  by: 'us' | 'venue'
  now: Date
}

/**
 * Books what a transaction redeemed of an outcome, once; a task takes over a row that no task has reported. False if
 * another task has reported it. The account is locked before.
 */
export async function addRedemption(tx: Tx, row: NewRedemption): Promise<boolean> {
  const rows = await query(
    tx,
    `insert into prediction_redemption as r (user_id, venue, market_id, outcome_id, title, shares, payout, tx_hash,
       redeemed_by, task_id, at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (user_id, venue, market_id, outcome_id, tx_hash) do update set task_id = excluded.task_id
       where r.task_id is null or r.task_id = excluded.task_id
     returning task_id`,
    [
      row.userId,
      row.venue,
      row.marketId,
      row.outcomeId,
      row.title,
      String(row.sharesUnits),
      String(row.payoutUnits),
      row.txHash.toLowerCase(),
      row.by,
      row.taskId,
      row.now,
    ],
  )
  return rows.length > 0
}

export const redemptionsOf = (
  db: Queryable,
  { userId, venue }: AccountKey,
  limit: number,
): Promise<PredictionRedemptionRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('prediction_redemption')
      .selectAll()
      .where('user_id', '=', userId)
      .where('venue', '=', venue)
      .orderBy('at', 'desc')
      .limit(limit),
  )

export const transfersOf = (
  db: Queryable,
  { userId, venue }: AccountKey,
  limit: number,
): Promise<PredictionTransferRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('prediction_transfer')
      .selectAll()
      .where('user_id', '=', userId)
      .where('venue', '=', venue)
      .orderBy('at', 'desc')
      .limit(limit),
  )
