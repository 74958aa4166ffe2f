import { type GzipPart, gzipPart } from '#invoke/gzip.ts'
import type { InvocableOperation, Invocation } from '#invoke/invocation.ts'
import { inputSchemaOf, type ObjectSchema, outputSchemaOf } from '#invoke/tool-schema.ts'
import { createKeyCounts, type KeyCounts } from '#kernel/async/key-counts.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import {
  type Access,
  type Entry,
  hasTask,
  isGuarded,
  isKeyed,
  isScope,
  type Operation,
} from '#kernel/contract/operation.ts'

/** There is one tool for each operation, built once, because a list of schemas costs more than most calls. */

export type ToolView = {
  name: string
  title: string
  description: string
  inputSchema: ObjectSchema
  outputSchema?: ObjectSchema
  annotations: {
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: boolean
  }
}
export type OperationTool = {
  view: ToolView
  access: Access
  invocable: InvocableOperation
  /** True if a repeat of the call could move money twice. */
  isGuarded: boolean
  /** True if the call makes a task, and reading that task returns every field of the answer. */
  becomesTask: boolean
}
/** `part` is the compressed JSON of the views, without the brackets of a list. */
export type ToolList = { views: readonly ToolView[]; part: GzipPart }
export type Toolbox = {
  byName: ReadonlyMap<string, OperationTool>
  listFor(caller: Caller): ToolList
  waits: KeyCounts
  /** The least time from the creation of a task to its deletion, or null if tasks are never deleted. */
  taskTtlMs: number | null
}

/** The most sets of scopes whose lists are cached; clients ask for few. */
const listsMax = 16

export const waitTool = 'tasks_wait'

export function createToolbox(
  operations: readonly Operation[],
  invocation: Invocation,
  taskTtlMs: number | null = null,
): Toolbox {
  const getTask = operations.find(({ name }) => name === 'tasks_get')
  const taskSchema = getTask && outputSchemaOf(getTask.name, getTask.entry)
  // Operations that need a backend key are left out: such keys belong to servers, and no MCP client has one.
  const all = operations
    .filter(({ entry }) => entry.access !== 'backend')
    .map((operation) => toTool(invocation.prepare(operation), operation === getTask ? undefined : taskSchema))
  const byName = new Map(all.map((tool) => [tool.view.name, tool]))
  const lists = new Map<string, ToolList>()
  return {
    byName,
    taskTtlMs,
    waits: createKeyCounts(),
    listFor({ scopes, person }) {
      const key = [...scopes, person ? 'person' : ''].sort().join(' ')
      const known = lists.get(key)
      if (known) return known
      const isAllowed = (access: Access): boolean =>
        access === 'public' ||
        (access === 'person' ? person !== undefined : isScope(access) && scopes.has(access))
      const allowed = all.filter(({ access }) => isAllowed(access))
      const views = allowed.flatMap((tool) =>
        tool.view.name === getTask?.name ? [tool.view, waitViewOf(tool.view)] : [tool.view],
      )
      const list = { views, part: gzipPart(JSON.stringify(views).slice(1, -1)) }
      for (const oldest of lists.keys()) if (lists.size >= listsMax) lists.delete(oldest)
      lists.set(key, list)
      return list
    },
  }
}

/** `taskSchema` is the schema of `tasks_get`, which describes the fields of tasks for all tools. */
function toTool(invocable: InvocableOperation, taskSchema: ObjectSchema | undefined): OperationTool {
  const { name, entry } = invocable.operation
  const outputSchema = outputSchemaOf(name, entry, taskSchema)
  const view: ToolView = {
    name,
    title: entry.summary,
    description: descriptionOf(entry),
    inputSchema: inputOf(name, entry),
    ...(outputSchema && { outputSchema }),
    annotations: annotationsOf(entry),
  }
  const becomesTask =
    entry.kind === 'task' &&
    (outputSchema?.required ?? []).every((field) => field in (taskSchema?.properties ?? {}))
  return { view, access: entry.access, invocable, isGuarded: isGuarded(entry), becomesTask }
}

function inputOf(name: string, entry: Entry): ObjectSchema {
  if (entry.kind !== 'stream') return inputSchemaOf(name, entry)
  if (!hasTask(entry)) return streamInputOf(name, entry)
  const { properties, ...rest } = inputSchemaOf(name, entry)
  // A tool answers as a whole and reports earlier items as progress, so its input has no field `stream`.
  const { stream: _, ...asked } = properties as Record<string, object>
  return { ...rest, properties: asked }
}

const reuseText = (found: string): string =>
  'Moves money or positions. REUSE the same `idempotency_key` whenever you repeat the same intent, above all after a ' +
  'timeout: the answer of the first call is replayed. Without the key, a repetition within 10 minutes is refused as ' +
  `\`possible_duplicate\` with the earlier ${found}; send \`confirm_repeat: true\` only to do it a second time on purpose.`
const guardTexts: Partial<Record<Entry['kind'], string>> = {
  task: reuseText('`task_id`: read that task with `tasks_get`'),
  act: reuseText('`idempotency_key`: repeat the call under it to read its answer'),
}

const descriptionOf = (entry: Entry): string =>
  [entry.summary, entry.description, isGuarded(entry) ? guardTexts[entry.kind] : undefined]
    .filter((text) => text !== undefined)
    .map((text) => (text.endsWith('.') ? text : `${text}.`))
    .join(' ')

function annotationsOf(entry: Entry): ToolView['annotations'] {
  const isRead = entry.kind === 'read' || (entry.kind === 'stream' && !hasTask(entry))
  return {
    readOnlyHint: isRead,
    destructiveHint: entry.kind === 'task' || isGuarded(entry) || (!isRead && entry.method === 'DELETE'),
    idempotentHint: isRead || (isKeyed(entry) && !isGuarded(entry)),
    // An act changes only records of the gateway, and reaches nothing outside it.
    openWorldHint: entry.kind !== 'act',
  }
}

export const streamItemsMax = 100
export const streamSecondsMax = 60
export const streamDefaults = { max_items: 20, seconds: 10 }

function streamInputOf(name: string, entry: Entry): ObjectSchema {
  const { properties, ...rest } = inputSchemaOf(name, entry)
  const bounded = (maximum: number, value: number, description: string) => ({
    type: 'integer',
    minimum: 1,
    maximum,
    default: value,
    description,
  })
  return {
    ...rest,
    properties: {
      ...properties,
      last_event_id: {
        type: 'string',
        maxLength: 255,
        description: 'Id of the last event that you have read',
      },
      max_items: bounded(streamItemsMax, streamDefaults.max_items, 'Returns after so many events'),
      seconds: bounded(streamSecondsMax, streamDefaults.seconds, 'Returns after so many seconds'),
    },
  }
}

/** The default wait stays below the 60 seconds that many clients and proxies allow for a request. */
export const waitSecondsDefault = 45

function waitViewOf({ inputSchema, outputSchema }: ToolView): ToolView {
  const timeout = {
    type: 'integer',
    minimum: 5,
    maximum: 90,
    default: waitSecondsDefault,
    description: 'Seconds to wait at most',
  }
  return {
    name: waitTool,
    title: 'Wait for the end of a task',
    description:
      'Waits until the task has completed, failed or was cancelled, and returns it as `tasks_get` does; after the ' +
      'timeout it returns the task as it stands. It reports progress where the client asks for it. Waiting again is safe.',
    inputSchema: { ...inputSchema, properties: { ...inputSchema.properties, timeout } },
    ...(outputSchema && { outputSchema }),
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true },
  }
}
