/** Operations that a chat may propose or call. */
import { group, implement, type Operation, read, task, taskOf } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { Text } from '#kernel/contract/wire-types.ts'

const contract = group('test', 'Operations of a test.', {
  move: task('POST /test/move', {
    summary: 'Move units',
    access: 'trade',
    waitSeconds: 5,
    body: T.Object(
      { units: T.Integer({ minimum: 1 }) },
      { $id: 'TestMoveRequest', additionalProperties: false },
    ),
    output: TaskResponse,
  }),
  list: read('GET /test/list', {
    summary: 'A long list',
    access: 'read',
    query: T.Object({ rows: T.Integer({ minimum: 0 }) }),
    output: T.Object({ rows: T.Array(T.Object({ name: Text })) }, { $id: 'TestListResponse' }),
  }),
})

export const testOperations = (): Operation[] =>
  implement(contract, {
    move: taskOf({
      admit: async ({ units }) => ({ data: { units }, first: 'move' as const }),
      steps: {
        move: async ({ data }) => ({ end: 'completed', outcome: 'executed', result: { units: data.units } }),
      },
    }),
    list: async ({ rows }) => ({ rows: Array.from({ length: rows }, (_, at) => ({ name: `row ${at}` })) }),
  })
