import type { TaskQueries } from '#durable/task-queries.ts'
import type { Task } from '#durable/task-row.ts'
import { implement } from '#kernel/operation.ts'
import type { TaskFullView } from '#kernel/task-response.ts'
import { contract } from './contract.ts'

type TasksDeps = { tasks: TaskQueries; view: (task: Task) => TaskFullView }

export const tasks = ({ tasks, view }: TasksDeps) =>
  implement(contract, {
    get: async ({ task_id }, caller) => view(await tasks.find(caller.userId, task_id)),

    list: async ({ skip = 0, limit = 20, status, kind }, caller) => {
      const page = await tasks.list(caller.userId, {
        skip,
        limit,
        ...(status && { status }),
        ...(kind && { kind }),
      })
      return { items: page.tasks.map(view), total: page.total, skip, limit }
    },

    cancel: async ({ task_id }, caller, request) => {
      const task = await tasks.cancel(caller.userId, task_id, request)
      return { task_id, status: task.status, cancel_requested: task.cancel_requested }
    },
  })
