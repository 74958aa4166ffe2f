import * as T from 'typebox'
import { act, group, read } from '#kernel/operation.ts'
import { taskStatuses } from '#kernel/task.ts'
import { TaskStatusResponse } from '#kernel/task-response.ts'
import { OneOf, Page, Text } from '#kernel/wire-types.ts'

const params = T.Object({ task_id: T.String({ minLength: 1, maxLength: 64, description: 'Task id' }) })

export const contract = group('tasks', {
  get: read('GET /v1/tasks/{task_id}', {
    summary: 'Poll a task',
    access: 'read',
    params,
    output: TaskStatusResponse,
    faults: ['not_found'],
  }),
  list: read('GET /v1/tasks', {
    summary: 'List your tasks, newest first',
    access: 'read',
    query: T.Object({
      skip: T.Optional(T.Integer({ minimum: 0, maximum: 10_000, default: 0 })),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 20 })),
      status: T.Optional(OneOf(taskStatuses)),
      kind: T.Optional(T.String({ minLength: 1, maxLength: 64 })),
    }),
    output: Page(TaskStatusResponse, { $id: 'TaskPage' }),
  }),
  cancel: act('POST /v1/tasks/{task_id}/cancel', {
    summary: 'Cancel a task of which nothing has been sent yet',
    access: 'trade',
    rate: 'exit',
    params,
    output: T.Object(
      { task_id: Text, status: OneOf(taskStatuses), cancel_requested: T.Boolean() },
      { $id: 'TaskCancelResponse' },
    ),
    faults: ['not_found', 'not_cancellable'],
  }),
})
