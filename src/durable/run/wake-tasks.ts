import { type Notifier, readyTopic } from '#durable/events/notifier.ts'
import { isEnded } from '#durable/task/task-row.ts'
import type { Transactions } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { query } from '#store/query.ts'
import type { Committer } from './step-committer.ts'

/** Makes parked tasks due at once because their event has happened; returns the ids of those that were parked. */
export type WakeTasks = (taskIds: readonly string[]) => Promise<string[]>

type WakeDeps = { transactions: Pick<Transactions, 'pool'>; notifier: Pick<Notifier, 'notify'>; clock: Clock }

export const createWakeTasks =
  ({ transactions: { pool }, notifier, clock }: WakeDeps): WakeTasks =>
  async (taskIds) => {
    // A locked row belongs to a task that is being parked, which a later call wakes, or that was claimed and runs.
    const woken = await query<{ task_id: string }>(
      pool,
      `with parked as materialized (select task_id from task_queue
         where task_id = any($1::uuid[]) and owner is null and run_at > $2 for no key update skip locked)
       update task_queue set run_at = $2 where task_id = any(array(select task_id from parked)) returning task_id`,
      [taskIds, clock.now()],
    )
    if (woken.length > 0) notifier.notify([readyTopic])
    return woken.map(({ task_id }) => task_id)
  }

/** Wakes the parent of each task that ends. A parent polls too, as an instance may die between commit and wake. */
export const wakingParents = (committer: Committer, wakeTasks: WakeTasks, log: Log): Committer => ({
  ...committer,
  async step(task, result) {
    const committed = await committer.step(task, result)
    const { parent_id: parentId } = task
    if (committed && isEnded(committed.task) && parentId !== null)
      void wakeTasks([parentId]).catch((error: unknown) =>
        log.debug({ error, task: parentId }, 'parent not woken; it polls'),
      )
    return committed
  },
})
