import { type GzipPart, gzipPart } from '#invoke/gzip.ts'
import type { InvocableOperation, Invocation } from '#invoke/invocation.ts'
import type { ObjectSchema } from '#invoke/tool-schema.ts'
import { createKeyCounts, type KeyCounts } from '#kernel/async/key-counts.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import {
  type Entry,
  hasTask,
  isGuarded,
  isKeyed,
  isScope,
  type Operation,
} from '#kernel/contract/operation.ts'
import { catalogueViews, createFindOperation, type FindOperation } from './find-operation.ts'
import { inputSchemaOf, mainInputOf, outputSchemaOf, wholeAnswerOf } from './tool-schema.ts'
import type { Selection } from './tool-selection.ts'
import type { OperationTool, ToolView } from './tool-view.ts'

/** There is one tool for each operation, built once, because a list of schemas costs more than most calls. */

/** What decides which tools a list shows. */
export type Viewer = {
  caller: Pick<Caller, 'scopes' | 'person'>
  /** Whether a person decides for the agent that calls. */
  isLinked: boolean
}
/** `part` is the compressed JSON of the views, without the brackets of a list. */
export type ToolList = { views: readonly ToolView[]; part: GzipPart }
export type Toolbox = {
  /** Returns the tool of an operation; undefined if there is none, or if the address of the client does not serve it. */
  find(name: string, selection: Selection): OperationTool | undefined
  findOperation: FindOperation
  listFor(viewer: Viewer, selection: Selection): ToolList
  waits: KeyCounts
  /** The least time from the creation of a task to its deletion, or null if tasks are never deleted. */
  taskTtlMs: number | null
}

/** The most lists that are cached; clients ask for few. */
const listsMax = 32

export const waitTool = 'tasks_wait'
const readTaskTool = 'tasks_get'
/** Tools of every section whose operations make tasks. */
const taskTools: readonly string[] = [readTaskTool, 'tasks_cancel']

export function createToolbox(
  operations: readonly Operation[],
  invocation: Invocation,
  taskTtlMs: number | null = null,
): Toolbox {
  const getTask = operations.find(({ name }) => name === readTaskTool)
  const taskSchema = getTask && wholeAnswerOf(getTask.entry)
  // Operations that need a backend key are left out: such keys belong to servers, and no MCP client has one.
  const all = operations
    .filter(({ entry }) => entry.access !== 'backend')
    .map((operation) => toTool(invocation.prepare(operation), operation === getTask ? undefined : taskSchema))
  const byName = new Map(all.map((tool) => [tool.view.name, tool]))
  const lists = new Map<string, ToolList>()
  const find: Toolbox['find'] = (name, selection) => {
    const tool = byName.get(name === waitTool ? readTaskTool : name)
    return tool && isServed(tool, selection) ? tool : undefined
  }
  return {
    find,
    findOperation: createFindOperation(byName),
    taskTtlMs,
    waits: createKeyCounts(),
    listFor(viewer, selection) {
      const key = listKeyOf(viewer) + selection.key
      const known = lists.get(key)
      if (known) return known
      const views = listedViews(
        all.filter((tool) => isOffered(tool, viewer)),
        selection,
      )
      const list = { views, part: gzipPart(JSON.stringify(views).slice(1, -1)) }
      for (const oldest of lists.keys()) if (lists.size >= listsMax) lists.delete(oldest)
      lists.set(key, list)
      return list
    },
  }
}

const entryOf = ({ invocable }: OperationTool): Entry => invocable.operation.entry

/** Viewers with the same key see the same tools. */
export const listKeyOf = ({ caller: { scopes, person }, isLinked }: Viewer): string =>
  [...scopes, person ? `person ${person.hasSignedUp}` : '', isLinked].sort().join(' ')

/** Whether a call of the viewer can succeed. Before the sign-up of a person the answer is that of the time after it. */
export function isOffered(tool: OperationTool, { caller: { scopes, person }, isLinked }: Viewer): boolean {
  const { access, callers, ...entry } = entryOf(tool)
  // No client of MCP has a private key to sign with.
  if (callers === 'pages' || callers === 'keys' || (entry.kind === 'act' && entry.isSigned)) return false
  if (callers === 'people' && !person) return false
  if (callers === 'decided' && !person && !isLinked) return false
  if (access === 'person') return person?.hasSignedUp === false
  return access === 'public' || (isScope(access) && scopes.has(access))
}

/** The main tools find and call every operation, so an address that serves them serves all. */
function isServed(
  { view, invocable: { operation } }: OperationTool,
  { hasMain, sections, readsOnly }: Selection,
): boolean {
  if (readsOnly && !view.annotations.readOnlyHint) return false
  return hasMain || sections.has(operation.group) || taskTools.includes(view.name)
}

function listedViews(allowed: readonly OperationTool[], selection: Selection): ToolView[] {
  const { hasMain, sections } = selection
  const served = allowed.filter((tool) => isServed(tool, selection))
  const ofSections = served.filter(({ invocable }) => sections.has(invocable.operation.group))
  const makesTasks = ofSections.some((tool) => entryOf(tool).kind === 'task')
  const viewOf = (tool: OperationTool): ToolView | undefined => {
    if (ofSections.includes(tool)) return tool.view
    if (hasMain) return tool.main
    return makesTasks && taskTools.includes(tool.view.name) ? tool.view : undefined
  }
  const views = served.flatMap((tool) => {
    const view = viewOf(tool)
    if (!view) return []
    return view.name === readTaskTool ? [view, waitViewOf(view)] : [view]
  })
  return hasMain ? [...views, ...catalogueViews(selection)] : views
}

/** `taskSchema` is the answer of `tasks_get`, which has the fields of tasks for all tools. */
function toTool(invocable: InvocableOperation, taskSchema: ObjectSchema | undefined): OperationTool {
  const { name, entry } = invocable.operation
  const outputSchema = outputSchemaOf(entry, taskSchema)
  const view: ToolView = {
    name,
    title: entry.summary,
    description: [entry.mainTool?.text, entry.description ?? entry.summary].filter(Boolean).join(' '),
    inputSchema: inputOf(name, entry),
    ...(outputSchema && { outputSchema }),
    annotations: annotationsOf(entry),
  }
  const { mainTool } = entry
  return {
    view,
    main: mainTool && {
      ...view,
      description: mainTool.text,
      inputSchema: mainInputOf(name, view.inputSchema, { entry, mainTool }),
    },
    invocable,
    isGuarded: isGuarded(entry),
    becomesTask:
      entry.kind === 'task' &&
      (wholeAnswerOf(entry)?.required ?? []).every((field) => field in (taskSchema?.properties ?? {})),
  }
}

function inputOf(name: string, entry: Entry): ObjectSchema {
  if (entry.kind !== 'stream') return inputSchemaOf(name, entry)
  if (!hasTask(entry)) return streamInputOf(name, entry)
  const { properties, ...rest } = inputSchemaOf(name, entry)
  // A tool answers as a whole and reports earlier items as progress, so its input has no field `stream`.
  const { stream: _, ...asked } = properties as Record<string, object>
  return { ...rest, properties: asked }
}

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
      'Waits until a task has finished, and returns it as `tasks_get` does; after the timeout as it stands. Take it for ' +
      'a task that is running, and `tasks_get` for one look. Waiting again is safe.',
    inputSchema: { ...inputSchema, properties: { ...inputSchema.properties, timeout } },
    ...(outputSchema && { outputSchema }),
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true },
  }
}
