import type { CancelAct, TaskQueries } from '#durable/task/task-queries.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { TriggerOrder } from '#kernel/task/trigger-order.ts'
import { query } from '#store/query.ts'

export type OrderAct = Required<CancelAct>
export type CancelTasks = Pick<TaskQueries, 'cancelNotSent'>
export type CancelRequest = { ids: readonly string[]; kinds: readonly string[]; at: Date }
/** Orders that a cancel ended, and orders of their groups that are armed again. */
export type Cancelled = { cancelled: TriggerOrder[]; armed: TriggerOrder[] }
/** Stores the events of changed orders, in the transaction that changed them. */
export type PublishOrders = (act: OrderAct, userId: string, changed: Cancelled) => Promise<void>

/**
 * Cancels orders that have not fired, or whose task has signed nothing. An order of the request that its OCO sibling
 * had cancelled stays cancelled, even if the task of that sibling executes nothing.
 */
export async function cancelOrders(
  act: CancelAct & { tx: Tx },
  tasks: CancelTasks,
  userId: string,
  request: CancelRequest,
): Promise<Cancelled> {
  // Tasks are locked before orders, in the same order as at the end of a task. An order may fire while this transaction
  // waits for locks, so the tasks of fired orders are cancelled a second time.
  const before = await cancelFired(act, tasks, userId, request)
  const waiting = await cancelWaiting(act.tx, userId, request)
  const meanwhile = await cancelFired(act, tasks, userId, request)
  return {
    cancelled: [...before.cancelled, ...waiting, ...meanwhile.cancelled],
    armed: [...before.armed, ...meanwhile.armed],
  }
}

/** Cancels orders that have not fired; it waits for the rows of a transaction that is firing them. */
export async function cancelWaiting(
  tx: Tx,
  userId: string,
  { ids, kinds, at }: CancelRequest,
): Promise<TriggerOrder[]> {
  const cancelled = await query<TriggerOrder>(
    tx,
    `update trigger_order set status = 'cancelled', updated_at = $4
       where user_id = $1 and id = any($2::uuid[]) and kind = any($3) and status in ('waiting', 'armed') returning *`,
    [userId, ids, kinds, at],
  )
  await query(
    tx,
    `update trigger_order set cancelled_by = null, updated_at = $4
       where user_id = $1 and id = any($2::uuid[]) and kind = any($3) and status = 'cancelled'
         and cancelled_by is not null`,
    [userId, ids, kinds, at],
  )
  return cancelled
}

/** Cancels fired orders with their tasks; the lock on a task decides between the cancel and the signature. */
async function cancelFired(
  act: CancelAct & { tx: Tx },
  tasks: CancelTasks,
  userId: string,
  { ids, kinds, at }: CancelRequest,
): Promise<Cancelled> {
  const fired = await query<{ task_id: string }>(
    act.tx,
    `select o.task_id from trigger_order o join task_queue q on q.task_id = o.task_id
       where o.user_id = $1 and o.id = any($2::uuid[]) and o.kind = any($3) and o.status = 'fired'`,
    [userId, ids, kinds],
  )
  const taskIds = await tasks.cancelNotSent(
    userId,
    fired.map(({ task_id }) => task_id),
    act,
  )
  return taskIds.length === 0 ? { cancelled: [], armed: [] } : cancelTaskOrders(act.tx, { taskIds, ids, at })
}

type CancelledTasks = { taskIds: readonly string[]; ids: readonly string[]; at: Date }

/** Cancels the orders of cancelled tasks, and arms their groups' orders outside `ids`; returns both. */
export async function cancelTaskOrders(tx: Tx, { taskIds, ids, at }: CancelledTasks): Promise<Cancelled> {
  const changed = await query<TriggerOrder>(
    tx,
    `with taken as (
       update trigger_order set status = 'cancelled', updated_at = $3
         where task_id = any($1::uuid[]) and status = 'fired' returning *),
     siblings as (
       update trigger_order t set status = 'armed', cancelled_by = null, updated_at = $3
         from taken where t.cancelled_by = taken.id and t.status = 'cancelled' and t.id <> all($2::uuid[])
         returning t.*)
     select * from taken union all select * from siblings`,
    [taskIds, ids, at],
  )
  return {
    cancelled: changed.filter(({ status }) => status === 'cancelled'),
    armed: changed.filter(({ status }) => status === 'armed'),
  }
}
