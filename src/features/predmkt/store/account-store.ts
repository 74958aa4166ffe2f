import { later } from '#kernel/clock.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'
import type { PredictionAccountRow } from '#store/tables/predmkt.ts'

/** The account of a user at a prediction market: its wallet, and what of its set-up is done. */

/** What a user reads again within this time has just been compared. */
const restedMs = 15_000

export type AccountKey = { userId: string; venue: string }

export const accountOf = (
  db: Queryable,
  { userId, venue }: AccountKey,
): Promise<PredictionAccountRow | undefined> =>
  fetchOne(
    db,
    builder
      .selectFrom('prediction_account')
      .selectAll()
      .where('user_id', '=', userId)
      .where('venue', '=', venue),
  )

export const walletOfRow = (row: PredictionAccountRow): VenueWallet => ({
  kind: row.wallet_kind,
  owner: row.owner_address,
  wallet: row.wallet_address,
})

export async function addAccount(
  db: Queryable,
  { userId, venue, wallet, now }: AccountKey & { wallet: VenueWallet; now: Date },
): Promise<void> {
  await query(
    db,
    `insert into prediction_account (user_id, venue, owner_address, wallet_address, wallet_kind, created_at)
     values ($1, $2, $3, $4, $5, $6) on conflict (user_id, venue) do nothing`,
    [userId, venue, wallet.owner, wallet.wallet, wallet.kind, now],
  )
}

/** Stores which protocols the wallet can trade, as the chain shows it, and ends a wait for the venue. */
export async function setReady(
  tx: Queryable,
  { userId, venue, protocols, now }: AccountKey & { protocols: readonly string[]; now: Date },
): Promise<void> {
  await query(
    tx,
    `update prediction_account set waiting_until = null,
       v1_ready_at = case when 'v1' = any($3::text[]) then coalesce(v1_ready_at, $4) else v1_ready_at end,
       v2_ready_at = case when 'v2' = any($3::text[]) then coalesce(v2_ready_at, $4) else v2_ready_at end
     where user_id = $1 and venue = $2`,
    [userId, venue, protocols, now],
  )
}

/** Makes changes of an account's orders and fills follow each other. It comes before any row of these. */
export async function lockAccount(tx: Queryable, { userId, venue }: AccountKey): Promise<void> {
  await query(tx, 'select 1 from prediction_account where user_id = $1 and venue = $2 for update', [
    userId,
    venue,
  ])
}

/** Takes the wallet for the relayer action of a task; false while another task has one in flight. */
export async function takeWallet(tx: Tx, { userId, venue }: AccountKey, taskId: string): Promise<boolean> {
  const rows = await query(
    tx,
    `update prediction_account set relayer_task_id = $3
     where user_id = $1 and venue = $2 and (relayer_task_id is null or relayer_task_id = $3 or not exists
       (select from task where id = relayer_task_id and status in ('pending', 'running'))) returning user_id`,
    [userId, venue, taskId],
  )
  return rows.length > 0
}

/** Whether the wallet is taken by a task that still runs, other than this one. */
export async function isWalletTaken(
  db: Queryable,
  { userId, venue }: AccountKey,
  taskId: string,
): Promise<boolean> {
  const rows = await query(
    db,
    `select 1 from prediction_account join task on id = relayer_task_id
     where prediction_account.user_id = $1 and venue = $2 and id <> $3 and status in ('pending', 'running')`,
    [userId, venue, taskId],
  )
  return rows.length > 0
}

export async function releaseWallet(tx: Tx, { userId, venue }: AccountKey, taskId: string): Promise<void> {
  await query(
    tx,
    `update prediction_account set relayer_task_id = null, waiting_until = null
     where user_id = $1 and venue = $2 and relayer_task_id = $3`,
    [userId, venue, taskId],
  )
}

export async function setWaiting(tx: Tx, { userId, venue }: AccountKey, until: Date | null): Promise<void> {
  await query(tx, 'update prediction_account set waiting_until = $3 where user_id = $1 and venue = $2', [
    userId,
    venue,
    until,
  ])
}

/** Makes the account due for a comparison with the venue, at the latest at this time. */
export async function scheduleSync(db: Queryable, { userId, venue }: AccountKey, at: Date): Promise<void> {
  await query(
    db,
    `update prediction_account set sync_at = least(coalesce(sync_at, $3), $3) where user_id = $1 and venue = $2`,
    [userId, venue, at],
  )
}

/** Makes an account due at once that nothing is open for, unless it was compared a moment ago. */
export async function scheduleRested(db: Queryable, { userId, venue }: AccountKey, now: Date): Promise<void> {
  await query(
    db,
    `update prediction_account set sync_at = $3
     where user_id = $1 and venue = $2 and sync_at is null and trades_through <= $4`,
    [userId, venue, now, later(now, -restedMs)],
  )
}

/** Makes the accounts of a user due at once, so that their keys are revoked once nothing needs them any more. */
export async function scheduleSyncOfUser(tx: Tx, userId: string, at: Date): Promise<void> {
  await query(
    tx,
    'update prediction_account set sync_at = least(coalesce(sync_at, $2), $2) where user_id = $1',
    [userId, at],
  )
}

/** Whether a task of the user runs that may need the key, or the orders of which are not compared before it ends. */
export async function hasRunningTask(db: Queryable, userId: string): Promise<boolean> {
  const rows = await query(
    db,
    `select 1 from task where user_id = $1 and status in ('pending', 'running') and starts_with(kind, 'predmkt_') limit 1`,
    [userId],
  )
  return rows.length > 0
}

export async function isSuspended(db: Queryable, userId: string): Promise<boolean> {
  const [row] = await query(db, 'select 1 from app_user where id = $1 and suspended_at is not null', [userId])
  return row !== undefined
}
