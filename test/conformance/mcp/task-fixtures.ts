/**
 * Tools that the conformance suite calls by fixed names and that become tasks. Those that take time are durable tasks of
 * the engine behind the door of the product; those that ask their client are kept here, since no task of the product does.
 */
import {
  inputRequired,
  MissingRequiredClientCapabilityError,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Core } from '#compose/core.ts'
import { toTaskFullView } from '#durable/task/task-view.ts'
import { declaresTasks, tasksExtension } from '#edges/mcp/protocol-task.ts'
import { type OwnHandlers, taskParams } from '#edges/mcp/server.ts'
import { createTasks } from '#features/tasks/tasks.ts'
import { group, implement, type Operation, task, taskOf } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'

type Json = Record<string, unknown>

const shape = {
  summary: 'A fixture of the conformance suite',
  access: 'trade',
  waitSeconds: 5,
  // The suite repeats its calls on purpose.
  repeatable: true,
  output: TaskResponse,
} as const
const slow = group('slow', 'Operations of a test.', {
  compute: task('POST /v1/fixtures/slow', {
    ...shape,
    body: T.Object({
      seconds: T.Integer({ minimum: 0, maximum: 60 }),
      label: T.Optional(T.String({ maxLength: 100 })),
    }),
  }),
})
const failing = group('failing', 'Operations of a test.', {
  job: task('POST /v1/fixtures/failing', { ...shape, body: T.Object({}) }),
})
const protocol = group('protocol', 'Operations of a test.', {
  errorJob: task('POST /v1/fixtures/broken', { ...shape, body: T.Object({}) }),
})

const endsWith = (code: string) =>
  taskOf({
    admit: async () => ({ data: {}, first: 'fail' as const }),
    steps: {
      fail: async () => ({
        end: 'failed',
        outcome: 'not_executed',
        error: { code, message: 'The fixture ends its task' },
      }),
    },
  })

/** The operations of the fixtures, with those that read and cancel tasks. */
export const taskOperations = ({ taskEngine, clock, db }: Core): Operation[] => [
  ...implement(slow, {
    compute: taskOf({
      admit: async ({ seconds }) => ({ data: { seconds }, first: 'wait' as const }),
      steps: {
        wait: async ({ data }) => ({ park: { afterMs: data.seconds * 1_000, next: 'finish' } }),
        finish: async () => ({ end: 'completed', outcome: 'executed', result: {} }),
      },
    }),
  }),
  ...implement(failing, { job: endsWith('conflict') }),
  ...implement(protocol, { errorJob: endsWith('internal') }),
  ...createTasks({
    tasks: taskEngine.tasks,
    db,
    clock,
    publishOrders: undefined,
    view: toTaskFullView,
    sections: () => ({ operations: [], kinds: [] }),
  }),
]

const text = (words: string) => ({ content: [{ type: 'text', text: words }] })
const elicit = (message: string, field: string) => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message,
    requestedSchema: { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] },
  },
})

/** A task that asks its client, until each of its questions has an answer. */
type AskingTask = { asked: Map<string, object>; result: object; isCancelled: boolean; at: string }

function createAskingTasks() {
  const known = new Map<string, AskingTask>()
  const begin = (questions: string[], result: object) => {
    const taskId = `asking-${known.size}`
    const asked = new Map(questions.map((field) => [`ask-${field}`, elicit(`Your ${field}?`, field)]))
    const at = new Date().toISOString()
    known.set(taskId, { asked, result, isCancelled: false, at })
    return { resultType: 'task', ...handle(taskId), status: 'working' }
  }
  const handle = (taskId: string) => {
    const { at } = known.get(taskId)!
    return { taskId, createdAt: at, lastUpdatedAt: at, ttlMs: null, pollIntervalMs: 100 }
  }
  return {
    begin,
    has: (taskId: string) => known.has(taskId),
    read(taskId: string): object {
      const { asked, result, isCancelled } = known.get(taskId)!
      if (isCancelled) return { ...handle(taskId), status: 'cancelled' }
      if (asked.size === 0) return { ...handle(taskId), status: 'completed', result }
      return { ...handle(taskId), status: 'input_required', inputRequests: Object.fromEntries(asked) }
    },
    answer: (taskId: string, keys: string[]) => {
      for (const key of keys) known.get(taskId)!.asked.delete(key)
    },
    cancel: (taskId: string) => {
      known.get(taskId)!.isCancelled = true
    },
  }
}
const asking = createAskingTasks()

type Run = (given: Json, context: ServerContext) => object
const tools: Record<string, Run> = {
  greet: ({ name }) => text(`Hello, ${String(name)}!`),
  confirm_delete: () => asking.begin(['confirm'], text('Deleted')),
  multi_input: () => asking.begin(['name', 'confirm'], text('Both have arrived')),
  test_tool_with_task(_given, { mcpReq }) {
    const answer = mcpReq.inputResponses?.user_name as { content?: Json } | undefined
    if (!answer) return inputRequired({ inputRequests: { user_name: elicit('Your name?', 'name') as never } })
    return asking.begin([], text(`Hello, ${String(answer.content?.name)}!`))
  },
}
/** Tools that have no other answer than a task. */
const onlyAsTasks = [
  'failing_job',
  'protocol_error_job',
  ...Object.keys(tools).filter((name) => name !== 'greet'),
]

/** Adds the tools to those that the server has. */
export function addTaskFixtures(server: Server, own: OwnHandlers): OwnHandlers {
  const withFixtures: OwnHandlers = {
    ...own,
    listTools: async (request, context) => ({
      tools: [
        ...(await own.listTools(request, context)).tools,
        ...Object.keys(tools).map((name) => ({
          name,
          description: `Fixture ${name}`,
          inputSchema: { type: 'object' as const },
        })),
      ],
    }),
    async callTool(request, context) {
      const { name, arguments: given = {} } = request.params
      if (onlyAsTasks.includes(name) && !declaresTasks(context.mcpReq.envelope))
        throw new MissingRequiredClientCapabilityError({
          requiredCapabilities: { extensions: { [tasksExtension]: {} } },
        })
      return (tools[name]?.(given, context) as never) ?? own.callTool(request, context)
    },
  }
  server.setRequestHandler('tasks/get', { params: taskParams }, async (params, context) => ({
    ...(asking.has(params.taskId) ? asking.read(params.taskId) : await own.getTask(params, context)),
  }))
  server.setRequestHandler('tasks/update', { params: taskParams }, async (params, context) => {
    if (!asking.has(params.taskId)) return own.updateTask(params, context)
    asking.answer(params.taskId, Object.keys(context.mcpReq.inputResponses ?? {}))
    return {}
  })
  server.setRequestHandler('tasks/cancel', { params: taskParams }, async (params, context) => {
    if (!asking.has(params.taskId)) return own.cancelTask(params, context)
    asking.cancel(params.taskId)
    return {}
  })
  return withFixtures
}
