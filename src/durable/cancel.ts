import type { Clock } from '#kernel/clock.ts'
import { Fault, notFound } from '#kernel/fault.ts'
import { isUuid } from '#kernel/id.ts'
import { all, one, q, send } from '#store/query.ts'
import { asTask, isEnded, type Task } from './row.ts'
import type { Transactions } from './transactions.ts'
import { readyTopic, taskTopic, type Wake } from './wake.ts'

type Needs = { transactions: Transactions; wake: Wake; clock: Clock }

/** The tasks of a user, as their owner may see and stop them. */
export type Tasks = {
  find(userId: string, taskId: string): Promise<Task>
  list(
    userId: string,
    page: { skip: number; limit: number; status?: string; kind?: string },
  ): Promise<{ tasks: Task[]; total: number }>
  cancel(userId: string, taskId: string): Promise<Task>
}

export function tasksOf({ transactions: { pool }, wake, clock }: Needs): Tasks {
  const find = async (userId: string, taskId: string): Promise<Task> => {
    if (!isUuid(taskId)) throw notFound('task')
    const row = await one(
      pool,
      q.selectFrom('task').selectAll().where('id', '=', taskId).where('user_id', '=', userId),
    )
    if (!row) throw notFound('task')
    return asTask(row)
  }

  return {
    find,

    async list(userId, { skip, limit, status, kind }) {
      let query = q.selectFrom('task').where('user_id', '=', userId)
      if (status !== undefined) query = query.where('status', '=', status)
      if (kind !== undefined) query = query.where('kind', '=', kind)
      const rows = await all(pool, query.selectAll().orderBy('id', 'desc').offset(skip).limit(limit))
      const [count] = await all(
        pool,
        query.select((eb) => eb.fn.countAll<bigint>().as('n')),
      )
      return { tasks: rows.map(asTask), total: Number(count?.n ?? 0) }
    },

    /** Only while nothing can have been sent: an effect that is stored may be on its way already. */
    async cancel(userId, taskId) {
      const task = await find(userId, taskId)
      if (task.status === 'cancelled') return task
      const [row] = await send<Task>(
        pool,
        `update task set cancel_requested = true, run_at = least(run_at, $3::timestamptz)
         where id = $1 and user_id = $2 and status in ('pending', 'running') and not exists
           (select 1 from effect where task_id = $1 and status not in ('dropped', 'rejected'))
         returning *`,
        [taskId, userId, clock.now()],
      )
      if (!row) {
        const now = await find(userId, taskId)
        if (now.status === 'cancelled') return now
        const reason = isEnded(now) ? 'it has ended' : 'it has been sent'
        throw new Fault('not_cancellable', `The task cannot be cancelled: ${reason}`, {
          extras: { task_id: taskId, status: now.status, reason },
        })
      }
      wake.hint([readyTopic, taskTopic(taskId)])
      return asTask(row)
    },
  }
}
