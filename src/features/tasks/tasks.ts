import type { TaskQueries } from '#durable/task/task-queries.ts'
import type { Task } from '#durable/task/task-row.ts'
import { subjectOf } from '#engines/agent-links/owners.ts'
import { cancelTaskOrders, type PublishOrders } from '#engines/trigger-orders/cancel.ts'
import type { Clock } from '#kernel/clock.ts'
import { invalid } from '#kernel/contract/fault.ts'
import { alternatives, nearest } from '#kernel/contract/nearest-names.ts'
import { hasTask, implement, type Operation } from '#kernel/contract/operation.ts'
import type { TaskFullView } from '#kernel/contract/task-response.ts'
import type { TaskKind } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import { adoptedKind } from '#store/record-found-effect.ts'
import { contract } from './contract.ts'

type TasksDeps = {
  db: Queryable
  tasks: TaskQueries
  clock: Clock
  /** Publishes the orders that changed; absent if the gateway serves no orders. */
  publishOrders: PublishOrders | undefined
  view: (task: Task) => TaskFullView
  /** Returns the operations and task kinds of all sections, which include this one. */
  sections: () => { operations: readonly Operation[]; kinds: readonly TaskKind[] }
}

/** Every kind that a task can have. */
const kindNamesOf = ({ operations, kinds }: ReturnType<TasksDeps['sections']>): string[] => [
  ...new Set([
    ...operations.flatMap(({ name, entry }) =>
      entry.kind === 'task' || hasTask(entry) ? [entry.taskKind ?? name] : [],
    ),
    ...kinds.map(({ kind }) => kind),
  ]),
]

/** Throws for an unknown kind, because a misspelt one would return an empty list for ever. */
function assertKind(kind: string, known: readonly string[]): void {
  if (known.includes(kind)) return
  const meant = nearest(kind, known)
  const remedy = `did you mean ${alternatives(meant.length > 0 ? meant : [...known].sort())}?`
  throw invalid('kind', 'unknown_task_kind', `There is no such kind of task; ${remedy}`)
}

export const createTasks = ({ db, tasks, clock, publishOrders, view, sections }: TasksDeps) =>
  implement(contract, {
    get: async ({ task_id, for_agent }, caller) => {
      const { userId } = await subjectOf(db, caller, for_agent)
      return view(await tasks.find(userId, task_id))
    },

    list: async (
      { skip = 0, limit = 20, status, kind, parent_task_id: parentId, chats, for_agent },
      caller,
    ) => {
      const { userId } = await subjectOf(db, caller, for_agent)
      if (kind !== undefined) assertKind(kind, [...kindNamesOf(sections()), adoptedKind])
      const page = await tasks.list(userId, {
        skip,
        limit,
        ...(status && { status }),
        ...(kind && { kind }),
        ...(parentId && { parentId }),
        ...(chats === false && { isWithoutChats: true }),
      })
      return { items: page.tasks.map(view), total: page.total, skip, limit }
    },

    cancel: async ({ task_id }, { userId }, { tx, afterCommit }) => {
      const act = { tx: tx!, afterCommit: afterCommit! }
      const task = await tasks.cancel(userId, task_id, act)
      const changed = await cancelTaskOrders(act.tx, { taskIds: [task.id], ids: [], at: clock.now() })
      await publishOrders?.(act, userId, changed)
      return { task_id, status: task.status, cancel_requested: task.cancel_requested }
    },
  })
