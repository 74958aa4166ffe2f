import type { ExitTerms } from '#features/predmkt/exit-request.ts'
import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import type { PredictionExitRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import type { AccountKey } from './account-store.ts'

/** Take-profits and stop-losses of purchases, from the wait for their shares to their end. */

type NewExits = {
  userId: string
  taskId: string
  row: Pick<PredictionOrderRow, 'venue' | 'order_id' | 'market_id' | 'outcome_id'>
  exits: readonly ExitTerms[]
  now: Date
  idOf: () => string
}

export async function addExits(tx: Tx, { userId, taskId, row, exits, now, idOf }: NewExits): Promise<void> {
  for (const { leg, price, percentage } of exits)
    await query(
      tx,
      `insert into prediction_exit (id, user_id, venue, entry_task_id, entry_order_id, leg, market_id, outcome_id,
         trigger_price, trigger_percentage, state, created_at, updated_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'waiting', $11, $11)
       on conflict (entry_task_id, leg) do nothing`,
      [
        idOf(),
        userId,
        row.venue,
        taskId,
        row.order_id,
        leg,
        row.market_id,
        row.outcome_id,
        price,
        percentage,
        now,
      ],
    )
}

const openStates = ['waiting', 'resting', 'watched', 'executing'] as const

export const openExits = (db: Queryable, { userId, venue }: AccountKey): Promise<PredictionExitRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('prediction_exit')
      .selectAll()
      .where('user_id', '=', userId)
      .where('venue', '=', venue)
      .where('state', 'in', openStates)
      .orderBy('created_at'),
  )

type ExitChange = Pick<PredictionExitRow, 'id' | 'state'> &
  Partial<Pick<PredictionExitRow, 'order_id' | 'exit_task_id' | 'error' | 'trigger_price'>> & {
    from: PredictionExitRow['state']
    now: Date
  }

/** Moves an exit on from one state; returns false if it has left that state meanwhile. */
export async function changeExit(
  db: Queryable,
  { id, from, state, order_id, exit_task_id, error, trigger_price, now }: ExitChange,
): Promise<boolean> {
  const rows = await query(
    db,
    `update prediction_exit set state = $2,
       order_id = case when $2 = 'executing' then null else coalesce($3, order_id) end,
       exit_task_id = coalesce($4, exit_task_id), error = $5, trigger_price = coalesce($6, trigger_price),
       updated_at = $7
     where id = $1 and state = $8 returning id`,
    [id, state, order_id ?? null, exit_task_id ?? null, error ?? null, trigger_price ?? null, now, from],
  )
  return rows.length > 0
}

/** Ends the other exits of a purchase, once one of them has sold its shares. */
export async function endPair(
  db: Queryable,
  { id, entry_task_id: entryTaskId }: Pick<PredictionExitRow, 'id' | 'entry_task_id'>,
  now: Date,
): Promise<void> {
  await query(
    db,
    `update prediction_exit set state = 'cancelled', updated_at = $3
     where entry_task_id = $1 and id <> $2 and state in ('waiting', 'watched', 'resting')`,
    [entryTaskId, id, now],
  )
}

/** Notes the order that the task of an exit signs; returns false if the exit was cancelled meanwhile. */
export async function setExitOrder(tx: Tx, taskId: string, orderId: string): Promise<boolean> {
  const rows = await query(
    tx,
    `update prediction_exit set order_id = $2 where exit_task_id = $1 and state = 'executing' returning id`,
    [taskId, orderId],
  )
  return rows.length > 0
}

/** Ends exits whose order was cancelled on purpose, so that they are not placed again. */
export async function endExitsOfOrders(db: Queryable, orderIds: readonly string[], now: Date): Promise<void> {
  await query(
    db,
    `update prediction_exit set state = 'cancelled', updated_at = $2 where order_id = any($1) and state in ('resting', 'executing')`,
    [orderIds, now],
  )
}

/** Ends the exits of a user that have no order yet: some of them, those of a market, of an outcome, or all. */
export async function cancelExits(
  db: Queryable,
  { userId, venue }: AccountKey,
  {
    ids,
    marketId,
    outcomeId,
    now,
  }: { ids: readonly string[] | null; marketId: string | null; outcomeId: string | null; now: Date },
): Promise<string[]> {
  const rows = await query<{ id: string }>(
    db,
    `update prediction_exit set state = 'cancelled', updated_at = $6
     where user_id = $1 and venue = $2
       and (state in ('waiting', 'watched') or (state = 'executing' and order_id is null))
       and ($3::uuid[] is null or id = any($3)) and ($4::text is null or market_id = $4)
       and ($5::text is null or outcome_id = $5) returning id`,
    [userId, venue, ids, marketId, outcomeId, now],
  )
  return rows.map(({ id }) => id)
}
