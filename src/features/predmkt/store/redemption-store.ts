import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import type { PredictionRedemptionRow, PredictionTransferRow } from '#store/tables/predmkt.ts'
import type { AccountKey } from './account-store.ts'

/** Payouts of resolved markets, and money between the user's wallets and the funded wallet. */

type NewRedemption = AccountKey & {
  taskId: string | null
  marketId: string
  outcomeId: string
  title: string
  sharesUnits: bigint
  payoutUnits: bigint
  txHash: string | null
  by: 'us' | 'venue'
  now: Date
}

/** Shares of an outcome that came after its redemption are redeemed by another task, and added. */
export async function addRedemption(tx: Tx, row: NewRedemption): Promise<void> {
  await query(
    tx,
    `insert into prediction_redemption as r (user_id, venue, market_id, outcome_id, title, shares, payout, tx_hash,
       redeemed_by, task_id, at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (user_id, venue, market_id, outcome_id) do update set shares = r.shares + excluded.shares,
       payout = r.payout + excluded.payout, tx_hash = excluded.tx_hash, redeemed_by = excluded.redeemed_by,
       task_id = excluded.task_id, at = excluded.at`,
    [
      row.userId,
      row.venue,
      row.marketId,
      row.outcomeId,
      row.title,
      String(row.sharesUnits),
      String(row.payoutUnits),
      row.txHash,
      row.by,
      row.taskId,
      row.now,
    ],
  )
}

export const redemptionsOf = (
  db: Queryable,
  { userId, venue }: AccountKey,
  limit = 500,
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
