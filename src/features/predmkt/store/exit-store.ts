import type { ExitTerms } from '#features/predmkt/exit-request.ts'
import { conflict } from '#kernel/contract/fault.ts'
import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { PredictionExitRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import type { AccountKey } from './account-store.ts'
import type { CancelScope } from './order-store.ts'

/** Take-profits and stop-losses of purchases, from the wait for their shares to their end. */

type NewExits = {
  userId: string
  taskId: string
  row: Pick<PredictionOrderRow, 'venue' | 'order_id' | 'market_id' | 'outcome_id'>
  exits: readonly ExitTerms[]
  now: Date
  idOf: () => string
}

/** Stores the exits of a purchase, and returns their legs; those that were cancelled before are not among them. */
export async function addExits(
  tx: Tx,
  { userId, taskId, row, exits, now, idOf }: NewExits,
): Promise<Set<ExitTerms['leg']>> {
  const added = new Set<ExitTerms['leg']>()
  for (const { leg, price, percentage } of exits) {
    const rows = await query(
      tx,
      `insert into prediction_exit (id, user_id, venue, entry_task_id, entry_order_id, leg, market_id, outcome_id,
         trigger_price, trigger_percentage, state, created_at, updated_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'waiting', $11, $11)
       on conflict (entry_task_id, leg) do nothing returning id`,
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
    if (rows.length > 0) added.add(leg)
  }
  return added
}

/** The gateway compares every open exit again and again. */
const exitsMax = 200

/** Refuses exits beyond what the gateway holds for one user, those of orders that are under way included. */
export async function assertExitRoom(
  db: Queryable,
  { userId, venue }: AccountKey,
  added: number,
): Promise<void> {
  if (added === 0) return
  const [row] = await query<{ count: number }>(
    db,
    `select (select count(*) from prediction_exit where user_id = $1 and venue = $2 and state in ${openStates})::integer
       + coalesce((select sum(jsonb_array_length(data -> 'exits')) from task where user_id = $1
         and status in ('pending', 'running') and kind = 'predmkt_order'), 0)::integer as count`,
    [userId, venue],
  )
  if ((row?.count ?? 0) + added <= exitsMax) return
  throw conflict(
    `The gateway holds at most ${exitsMax} exits per user: cancel some of them first`,
    `${row?.count} exits are open`,
  )
}

const openStates = `('waiting', 'resting', 'watched', 'executing')`

export const openExits = (db: Queryable, { userId, venue }: AccountKey): Promise<PredictionExitRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('prediction_exit')
      .selectAll()
      .where('user_id', '=', userId)
      .where('venue', '=', venue)
      .where('state', 'in', ['waiting', 'resting', 'watched', 'executing'])
      .orderBy('created_at'),
  )

/** Locks the exits of a purchase, so that one transaction at a time decides about them. */
export const lockExits = (tx: Tx, entryOrderId: string): Promise<PredictionExitRow[]> =>
  query(tx, 'select * from prediction_exit where entry_order_id = $1 order by id for update', [entryOrderId])

type ExitChange = Pick<PredictionExitRow, 'id' | 'state' | 'attempts'> &
  Partial<Pick<PredictionExitRow, 'order_id' | 'exit_task_id' | 'error' | 'trigger_price'>> & {
    from: PredictionExitRow['state']
    now: Date
  }

/** Moves an exit on from one state; returns false if it has left that state meanwhile. */
export async function changeExit(
  db: Queryable,
  { id, from, state, attempts, order_id, exit_task_id, error, trigger_price, now }: ExitChange,
): Promise<boolean> {
  const rows = await query(
    db,
    `update prediction_exit set state = $2, order_id = coalesce($3, order_id),
       exit_task_id = coalesce($4, exit_task_id), error = $5, trigger_price = coalesce($6, trigger_price),
       updated_at = $7, attempts = $9
     where id = $1 and state = $8 returning id`,
    [
      id,
      state,
      order_id ?? null,
      exit_task_id ?? null,
      error ?? null,
      trigger_price ?? null,
      now,
      from,
      attempts,
    ],
  )
  return rows.length > 0
}

/** The exit that a task executes, locked for its transaction; undefined once the exit was cancelled. */
export async function lockExecuted(tx: Tx, taskId: string): Promise<PredictionExitRow | undefined> {
  const [row] = await query<PredictionExitRow>(
    tx,
    `select * from prediction_exit where exit_task_id = $1 and state = 'executing' for update`,
    [taskId],
  )
  return row
}
export const exitOfTask = (db: Queryable, taskId: string): Promise<PredictionExitRow | undefined> =>
  fetchOne(db, builder.selectFrom('prediction_exit').selectAll().where('exit_task_id', '=', taskId))

export type ExitScope = CancelScope & {
  /** Exits by their own ids, or by their orders; null means the exits of a market, of an outcome, or all. */
  named: { exitIds: readonly string[]; orderIds: readonly string[] } | null
}
export type EndedExit = {
  id: string
  /** The orders of the exit that may still be open at the venue. */
  orders: string[]
}

/** Ends exits in whatever open state, for good: what of them is at the venue is left to the caller. */
export const cancelExits = (
  db: Queryable,
  { userId, venue }: AccountKey,
  { named, marketId, outcomeId, now }: ExitScope & { now: Date },
): Promise<EndedExit[]> =>
  query(
    db,
    `update prediction_exit e set state = 'cancelled', updated_at = $7
     where e.user_id = $1 and e.venue = $2 and e.state in ${openStates}
       and ($3::uuid[] is null or e.id = any($3) or e.order_id = any($4)
         or e.exit_task_id in (select task_id from prediction_order where order_id = any($4)))
       and ($5::text is null or e.market_id = $5) and ($6::text is null or e.outcome_id = $6)
     returning e.id, array(select o.order_id from prediction_order o where o.ended_at is null
       and (o.order_id = e.order_id or o.task_id = e.exit_task_id)) as orders`,
    [userId, venue, named?.exitIds ?? null, named?.orderIds ?? [], marketId, outcomeId, now],
  )

/**
 * Ends exits before they begin: those of purchases whose tasks still run, and store no exit where there is one already.
 */
export const cancelComingExits = (
  db: Queryable,
  { userId, venue }: AccountKey,
  { marketId, outcomeId, now }: CancelScope & { now: Date },
): Promise<{ id: string }[]> =>
  query(
    db,
    `insert into prediction_exit (id, user_id, venue, entry_task_id, entry_order_id, leg, market_id, outcome_id,
       trigger_price, trigger_percentage, state, created_at, updated_at)
     select gen_random_uuid(), o.user_id, o.venue, o.task_id, o.order_id, e ->> 'leg', o.market_id, o.outcome_id,
       (e ->> 'price')::bigint, (e ->> 'percentage')::numeric, 'cancelled', $5, $5
     from prediction_order o join task t on t.id = o.task_id and t.status in ('pending', 'running')
       cross join jsonb_array_elements(coalesce(t.data -> 'exits', '[]')) e
     where o.user_id = $1 and o.venue = $2 and ($3::text is null or o.market_id = $3)
       and ($4::text is null or o.outcome_id = $4)
     on conflict (entry_task_id, leg) do nothing returning id`,
    [userId, venue, marketId, outcomeId, now],
  )
