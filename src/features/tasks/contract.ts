import { act, group, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskStatusResponse } from '#kernel/contract/task-response.ts'
import { ForAgent, ForAgentQuery, OneOf, Page, Text } from '#kernel/contract/wire-types.ts'
import { taskStatuses } from '#kernel/task/task-state.ts'

const params = T.Object({ task_id: T.String({ minLength: 1, maxLength: 64, description: 'Task id' }) })

const about = 'Poll, list and cancel tasks. Every operation that moves money creates one.'

export const contract = group('tasks', about, {
  get: read('GET /v1/tasks/{task_id}', {
    summary: 'Poll a task',
    mainTool: {
      text: 'The status of one task, by its id. `outcome`: `executed` is success, after `not_executed` nothing moved, `unknown` is being looked up: never retry. With `state: awaiting_approval` a person decides at `approval.confirm_url`. Take `tasks_wait` to wait for the end.',
      fields: { task_id: '' },
    },
    description:
      'Use it to poll a task until `status` is completed, failed or cancelled. `completed` with `outcome: executed` is success, and `result` has the figures. `failed` with `outcome: not_executed` means that nothing moved, so a new attempt under a new idempotency key is safe. `outcome: partial` means that a part moved: read `result` first. `outcome: unknown` means that the outcome is being looked up: keep polling and never retry. `state: awaiting_approval` means that a person has to approve it at `approval.confirm_url`: say so, and keep polling. Next: while it lives, ask again after 1 to 2 seconds, or follow `notifications_stream`.',
    access: 'read',
    params,
    query: ForAgentQuery,
    output: TaskStatusResponse,
    faults: ['not_found'],
  }),
  list: read('GET /v1/tasks', {
    isAddition: true,
    summary: 'List your tasks, newest first',
    mainTool: {
      text: 'Your recent tasks and transactions, newest first: what you have done today, and what is under way. Take it where an answer was lost, to see whether the call went through, and `tasks_get` for one task.',
      fields: { status: '', kind: 'Operation, such as earn_deposit', limit: '' },
    },
    description:
      'Use it to find a task whose answer was lost; newest first. `kind` is the `kind` of a task, such as `earn_deposit`. Next: `tasks_get` with a `task_id`; `skip` reads further pages.',
    access: 'read',
    query: T.Object({
      skip: T.Optional(T.Integer({ minimum: 0, default: 0 })),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 20 })),
      status: T.Optional(OneOf(taskStatuses)),
      kind: T.Optional(T.String({ minLength: 1, maxLength: 64 })),
      parent_task_id: T.Optional(
        T.String({ format: 'uuid', maxLength: 36, description: 'Only tasks that this task has started' }),
      ),
      chats: T.Optional(
        T.Boolean({
          default: true,
          description: 'false leaves out the answers of chats, which are tasks, too',
        }),
      ),
      for_agent: ForAgent,
    }),
    faults: ['not_found'],
    output: Page(TaskStatusResponse, { $id: 'TaskPage' }),
  }),
  cancel: act('POST /v1/tasks/{task_id}/cancel', {
    isAddition: true,
    summary: 'Cancel a task of which nothing has been sent yet',
    description:
      'Use it while `cancellable` is true: nothing has been signed or sent yet. `not_cancellable` means that the task has ended or its bytes may have been sent. Next: poll `tasks_get` until `status` is cancelled; orders are cancelled by `perp_cancel`.',
    access: 'trade',
    repeatable: true,
    rate: 'exit',
    params,
    output: T.Object(
      { task_id: Text, status: OneOf(taskStatuses), cancel_requested: T.Boolean() },
      { $id: 'TaskCancelResponse' },
    ),
    faults: ['not_found', 'not_cancellable'],
  }),
})
