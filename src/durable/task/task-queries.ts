import { type Notifier, readyTopic, taskTopic } from '#durable/events/notifier.ts'
import type { Transactions } from '#durable/transactions.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import type { RequestFacts } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import { isUuid } from '#kernel/id.ts'
import type { TaskStatus } from '#kernel/task/task-state.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'
import { asTask, isAdmitted, isEnded, type Task } from './task-row.ts'

type TaskQueryDeps = { transactions: Transactions; notifier: Notifier; clock: Clock }

/** The most tasks that are paged through and counted: counting a whole history for each page is too slow. */
export const totalMax = 10_100
/** Tasks of one kind are searched among this many of the newest tasks of a status: no index has kind and status. */
export const searchedMax = 20_000

export type TaskQueries = {
  find(userId: string, taskId: string): Promise<Task>
  list(
    userId: string,
    page: { skip: number; limit: number } & TaskFilter,
  ): Promise<{ tasks: Task[]; total: number }>
  /** Cancels a task, in the act's transaction if there is one: a second connection could deadlock the pool. */
  cancel(userId: string, taskId: string, act?: CancelAct): Promise<Task>
  /** Cancels those of the tasks that have signed nothing, in the transaction of the act, and returns their ids. */
  cancelNotSent(userId: string, taskIds: readonly string[], act: CancelAct): Promise<string[]>
}
export type CancelAct = Pick<RequestFacts, 'tx' | 'afterCommit'>

export async function readTask(db: Queryable, taskId: string): Promise<Task> {
  const row = await fetchOne(db, builder.selectFrom('task').selectAll().where('id', '=', taskId))
  if (!row) throw new Error(`task ${taskId} is gone`)
  return asTask(row)
}

const isOpen = (status: TaskStatus | undefined) => status === 'pending' || status === 'running'

async function countUpToMax(pool: Queryable, matching: string, values: unknown[]): Promise<number> {
  const text = `select count(*)::integer as n from (${matching} limit ${totalMax}) counted`
  const [row] = await query<{ n: number }>(pool, text, values)
  return row?.n ?? 0
}

type TaskFilter = { status?: TaskStatus; kind?: string; parentId?: string; isWithoutChats?: boolean }

/** Selects the ids of user $1's tasks, newest first, and only those of the kind or the parent if these are given. */
function matchingSql(filter: TaskFilter): { matching: string; values: string[] } {
  const { status, kind, parentId } = filter
  const kinds = kind === undefined ? [] : [kind]
  if (parentId === undefined) return { matching: matchingOfUser(filter), values: kinds }
  // A parent has few tasks, so the index by parent is enough, and status and kind only filter its rows.
  const ofStatus = status === undefined ? '' : `and status = '${status}'`
  const ofKind = kind === undefined ? '' : 'and kind = $3'
  const matching = `select id from task where user_id = $1 and parent_id = $2 ${ofStatus} ${ofKind} order by id desc`
  return { matching, values: [parentId, ...kinds] }
}

/** Selects the ids of user $1's tasks by status and kind; the kind is parameter $2. */
function matchingOfUser({ status, kind, isWithoutChats }: TaskFilter): string {
  // Answers of chats can be most of a user's tasks, so others are searched among so many of the newest tasks.
  if (isWithoutChats && kind === undefined) {
    const ofStatus = status === undefined ? '' : `and status = '${status}'`
    const newest = `select id, kind from task where user_id = $1 ${ofStatus} order by id desc limit ${searchedMax}`
    return `select id from (${newest}) searched where kind <> 'chat' order by id desc`
  }
  // The range and the order by kind fit only the index by kind, so the planner does not scan tasks of other kinds.
  const ofKind = 'and kind >= $2 and kind <= $2 order by kind, id desc'
  if (status === undefined)
    return `select id from task where user_id = $1 ${kind === undefined ? 'order by id desc' : ofKind}`
  // The status is a literal, so that the planner can use the partial index of the status.
  const ofStatus = `from task where user_id = $1 and status = '${status}' order by id desc`
  if (kind === undefined) return `select id ${ofStatus}`
  return `select id from (select id, kind ${ofStatus} limit ${searchedMax}) searched where kind = $2 order by id desc`
}

export function createTaskQueries({ transactions: { pool }, notifier, clock }: TaskQueryDeps): TaskQueries {
  const findTask = async (db: Queryable, userId: string, taskId: string): Promise<Task> => {
    if (!isUuid(taskId)) throw notFound('task', 'tasks_list')
    const row = await fetchOne(
      db,
      builder.selectFrom('task').selectAll().where('id', '=', taskId).where('user_id', '=', userId),
    )
    if (!row) throw notFound('task', 'tasks_list')
    return asTask(row)
  }

  const notifyOf = (userId: string, taskIds: readonly string[], { afterCommit }: CancelAct): void => {
    const notify = () => notifier.notify([readyTopic, ...taskIds.map((id) => taskTopic(id, userId))])
    if (afterCommit) afterCommit(notify)
    else notify()
  }

  /**
   * Users and filters whose count has reached the maximum. They are not counted again for an hour, because only
   * retention makes the number of ended tasks smaller.
   */
  const fullTotals = createTtlCache<number>({ ttlMs: 3_600_000, entriesMax: 10_000, nowMs: monotonicMs })

  const queries: TaskQueries = {
    find: (userId, taskId) => findTask(pool, userId, taskId),

    async list(userId, { skip, limit, ...filter }) {
      const { matching, values: rest } = matchingSql(filter)
      const values = [userId, ...rest]
      const next = values.length + 1
      const counted = `${userId} ${filter.isWithoutChats ?? ''} ${filter.status ?? ''} ${filter.kind ?? ''} ${filter.parentId ?? ''}`
      const [rows, total] = await Promise.all([
        // An index-only scan finds the page, so only the rows of the page are read.
        query<Task>(
          pool,
          `select * from task where id = any(array(${matching} offset $${next}::bigint limit $${next + 1}::integer)) order by id desc`,
          [...values, skip, limit],
        ),
        fullTotals.peek(counted) ?? countUpToMax(pool, matching, values),
      ])
      if (total === totalMax && !isOpen(filter.status)) await fullTotals.get(counted, async () => total)
      return { tasks: rows.map(asTask), total }
    },

    /** Cancels a task; refuses once an effect is stored, since its signed bytes may be in flight. */
    async cancel(userId, taskId, act = {}) {
      const db = act.tx ?? pool
      const task = await findTask(db, userId, taskId)
      if (task.status === 'cancelled') return task
      const [row] = await query<Task>(db, 'select * from task_cancel($1, $2, $3)', [
        taskId,
        userId,
        clock.now(),
      ])
      if (!row) {
        const now = await findTask(db, userId, taskId)
        if (now.status === 'cancelled') return now
        // An approval accepted the task in place of its waiting row meanwhile, so the cancel is tried on the accepted task.
        if (!isAdmitted(task) && isAdmitted(now) && !isEnded(now)) return queries.cancel(userId, taskId, act)
        const reason = isEnded(now) ? 'it has ended' : 'it has been sent, or may have been'
        throw new Fault(
          'not_cancellable',
          `The task cannot be cancelled: ${reason}; \`tasks_get\` has its outcome`,
          {
            extras: { task_id: taskId, status: now.status, reason },
          },
        )
      }
      notifyOf(userId, [taskId], act)
      return asTask(row)
    },

    async cancelNotSent(userId, taskIds, act) {
      if (taskIds.length === 0) return []
      // Tasks are locked in the order of their ids, as in a commit of steps.
      const rows = await query<{ id: string }>(
        act.tx ?? pool,
        `select c.id from (select id from unnest($1::uuid[]) id order by id) t, lateral task_cancel(t.id, $2, $3) c`,
        [taskIds, userId, clock.now()],
      )
      const cancelled = rows.map(({ id }) => id)
      if (cancelled.length > 0) notifyOf(userId, cancelled, act)
      return cancelled
    },
  }
  return queries
}
