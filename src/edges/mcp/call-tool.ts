import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Admitted, Outcome } from '#invoke/invocation.ts'
import { Fault, invalid, notFound } from '#kernel/contract/fault.ts'
import { hasTask, type StreamItem } from '#kernel/contract/operation.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { callToolName, findToolName } from './find-operation.ts'
import { type CreatedTask, isLive, type ReadTask, toCreatedTask } from './protocol-task.ts'
import { answerResult, faultResult, type ToolResult } from './tool-result.ts'
import { mainSelection, type Selection } from './tool-selection.ts'
import type { OperationTool } from './tool-view.ts'
import {
  isOffered,
  streamDefaults,
  streamItemsMax,
  streamSecondsMax,
  type Toolbox,
  type Viewer,
  waitSecondsDefault,
  waitTool,
} from './tools.ts'

export type CallFacts = {
  authorization: string | undefined
  address: string
  id: string
  viewer: () => Promise<Viewer>
  /** The tools that the address of the client serves. */
  selection: Selection
  signal: AbortSignal
  progress?: (status: TaskProgressView) => Promise<void>
  /** Whether the client takes a protocol task in place of a result. */
  takesTasks?: boolean
}
type TaskProgressView = { progress: number; message: string }
type Fields = Record<string, unknown>

const pollMs = 500
/** The most waits of one user at a time; a further wait returns the current state of the task at once. */
const waitsPerUserMax = 10

/** Returns the result of a call, or undefined if no tool has this name. The function throws only on bugs. */
export async function callTool(
  toolbox: Toolbox,
  name: string,
  given: Fields,
  facts: CallFacts,
): Promise<ToolResult | CreatedTask | undefined> {
  const { selection } = facts
  const { find, findOperation } = toolbox
  try {
    if (selection.hasMain && name === findToolName) {
      const viewer = await facts.viewer()
      return findOperation(
        given,
        (tool) => isOffered(tool, viewer) && find(tool.view.name, selection) !== undefined,
      )
    }
    if (selection.hasMain && name === callToolName) return await callNamed(toolbox, given, facts)
    const tool = find(name, selection)
    return tool && (await runTool(toolbox, { name, tool }, given, facts))
  } catch (error) {
    if (error instanceof Fault) return faultResult(error)
    throw error
  }
}

/** Calls the operation that the arguments name, by the same path as its own tool. */
async function callNamed(
  toolbox: Toolbox,
  given: Fields,
  facts: CallFacts,
): Promise<ToolResult | CreatedTask> {
  const { name, arguments: input = {}, ...others } = given
  if (typeof name !== 'string')
    throw invalid('name', 'string_type', 'Input should be the name of an operation')
  if (!isRecord(input)) throw invalid('arguments', 'model_attributes_type', 'Input should be an object')
  const [misplaced] = Object.keys(others)
  if (misplaced !== undefined)
    throw invalid(misplaced, 'extra_forbidden', 'The fields of the operation belong into `arguments`')
  const tool = toolbox.find(name, facts.selection)
  if (!tool) throw notFound('operation at this address', findToolName)
  return runTool(toolbox, { name, tool }, input, facts)
}

type NamedTool = { name: string; tool: OperationTool }

async function runTool(
  toolbox: Toolbox,
  { name, tool }: NamedTool,
  given: Fields,
  facts: CallFacts,
): Promise<ToolResult | CreatedTask> {
  const { waits } = toolbox
  const { invocable } = tool
  const admitted = await invocable.admit(facts)
  if (admitted.refusal) throw admitted.refusal
  if (name === waitTool) {
    const { principal } = admitted
    const mayWait = waits.get(principal) < waitsPerUserMax
    waits.add(principal)
    using _wait: Disposable = { [Symbol.dispose]: () => waits.remove(principal) }
    return await waitForTask(tool, admitted, given, { ...facts, mayWait })
  }
  const { entry } = invocable.operation
  if (hasTask(entry)) return answerStream(tool, admitted, given, facts)
  if (entry.kind === 'stream') return readStream(tool, admitted, given, facts)
  const result = await callOperation(tool, admitted, given, facts)
  return (facts.takesTasks && (await createdTask(toolbox, tool, { admitted, result, facts }))) || result
}

type ToolAnswer = { admitted: Admitted; result: ToolResult; facts: CallFacts }

/**
 * Returns the task of a call as a protocol task, for a client that polls tasks by the MCP extension, or undefined if
 * the call is answered with its result.
 */
async function createdTask(
  { find, taskTtlMs }: Toolbox,
  { becomesTask }: OperationTool,
  { admitted, result, facts }: ToolAnswer,
): Promise<CreatedTask | undefined> {
  const reader = find('tasks_get', mainSelection)?.invocable
  const { task_id, status } = result.structuredContent ?? {}
  if (!becomesTask || !reader || !isLive(status) || !admitted.caller?.scopes.has('read')) return undefined
  // This read of the task is part of the call, and the rate limit does not count it. If it fails, the call is answered
  // with its result in place of a protocol task.
  const { input, ...options } = reader.readFlatInput({ task_id })
  const outcome = await reader.call(admitted, input, options, facts).catch(() => undefined)
  if (outcome?.kind !== 'answer') return undefined
  return toCreatedTask(outcome.body as ReadTask, { ...result, ttlMs: taskTtlMs })
}

async function callOperation(
  { invocable, view, isGuarded }: OperationTool,
  admitted: Admitted,
  given: Fields,
  facts: CallFacts,
): Promise<ToolResult> {
  const duplicates = isGuarded && takeBoolean(given, 'confirm_repeat') ? 'allow' : 'refuse'
  const { input, ...read } = invocable.readFlatInput(given)
  const options = { ...read, ...(isGuarded && ({ duplicates } as const)) }
  const call = (wanted: typeof options): Promise<Outcome> =>
    invocable.call(admitted, structuredClone(input), wanted, facts)
  if (!options.wait || !facts.progress) return toResult(await call(options), view)
  // The first call only accepts the task, so that progress can be reported; the second call waits for its end.
  const accepted = await call({ ...options, wait: false })
  const key = accepted.kind === 'answer' ? accepted.key : undefined
  if (key === undefined) return toResult(accepted, view)
  const ended = new AbortController()
  const reporting = reportUntil(ended.signal, facts.progress)
  const replayed = accepted.kind === 'answer' && accepted.replayed
  try {
    const waited = await call({ ...options, key })
    return toResult(waited.kind === 'answer' ? { ...waited, replayed } : waited, view)
  } finally {
    ended.abort()
    await reporting
  }
}

/** Reports that the task continues, because a silent call looks like a lost one. */
async function reportUntil(
  ended: AbortSignal,
  progress: (status: TaskProgressView) => Promise<void>,
): Promise<void> {
  const report = async (step: number, message: string) =>
    progress({ progress: step, message }).catch(() => undefined)
  await report(1, 'The task is accepted')
  for (let step = 2; !ended.aborted; step++) {
    await delay(2 * pollMs, undefined, { signal: ended }).catch(() => undefined)
    if (!ended.aborted) await report(step, 'The task is running')
  }
}

const toResult = (outcome: Outcome, view: OperationTool['view']): ToolResult => {
  if (outcome.kind === 'stream') throw new Error('a stream in place of an answer')
  return answerResult(outcome.body, view, outcome)
}

/** Reads the task again and again until it has ended. The rate limit counts the whole wait as one read. */
async function waitForTask(
  { invocable, view }: OperationTool,
  admitted: Admitted,
  given: Fields,
  facts: CallFacts & { mayWait: boolean },
): Promise<ToolResult> {
  const seconds = takeInteger(given, 'timeout', { min: 5, max: 90, initial: waitSecondsDefault })
  const { input, ...options } = invocable.readFlatInput(given)
  const untilMs = performance.now() + (facts.mayWait ? seconds * 1_000 : 0)
  let shown = ''
  for (let step = 1; ; ) {
    const outcome = await invocable.call(admitted, { ...input }, options, facts)
    if (outcome.kind === 'stream') throw new Error('a task is no stream')
    const { status, state, message } = isRecord(outcome.body) ? outcome.body : {}
    if (!isLive(status) || performance.now() >= untilMs || facts.signal.aborted)
      return answerResult(outcome.body, view, outcome)
    const line = `${String(state)}: ${String(message)}`
    if (facts.progress && line !== shown) {
      shown = line
      await facts.progress({ progress: step++, message: line }).catch(() => undefined)
    }
    await delay(pollMs, undefined, { signal: facts.signal }).catch(() => undefined)
  }
}

async function readStream(
  { invocable }: OperationTool,
  admitted: Admitted,
  given: Fields,
  facts: CallFacts,
): Promise<ToolResult> {
  const itemsMax = takeInteger(given, 'max_items', {
    min: 1,
    max: streamItemsMax,
    initial: streamDefaults.max_items,
  })
  const seconds = takeInteger(given, 'seconds', {
    min: 1,
    max: streamSecondsMax,
    initial: streamDefaults.seconds,
  })
  const { last_event_id: lastEventId } = given
  delete given.last_event_id
  if (lastEventId !== undefined && typeof lastEventId !== 'string')
    throw invalid('last_event_id', 'string_type', 'Input should be a valid string')
  const { input, ...options } = invocable.readFlatInput(given)
  const leaving = new AbortController()
  const signal = AbortSignal.any([facts.signal, leaving.signal])
  const request = { ...facts, signal, ...(lastEventId !== undefined && { lastEventId }) }
  const outcome = await invocable.call(admitted, input, options, request)
  if (outcome.kind !== 'stream') throw new Error('an answer in place of a stream')
  const items = await readItems(
    outcome.items,
    itemsMax,
    AbortSignal.any([signal, AbortSignal.timeout(seconds * 1_000)]),
  )
  leaving.abort()
  return { content: [{ type: 'text', text: JSON.stringify({ items }) }] }
}

async function answerStream(
  { invocable, view }: OperationTool,
  admitted: Admitted,
  given: Fields,
  { progress, ...facts }: CallFacts,
): Promise<ToolResult> {
  // A value of `stream` that is not a boolean is passed on, so that the validation refuses it, as over HTTP.
  const { stream = false } = given
  const asked = { ...given, stream: typeof stream === 'boolean' ? false : stream }
  const { input, ...options } = invocable.readFlatInput(asked)
  const keyed = { ...options, key: options.key ?? randomUUID() }
  if (progress) {
    const outcome = await invocable.call(admitted, { ...input, stream: true }, keyed, facts)
    if (outcome.kind === 'stream') await reportItems(outcome.items, progress)
  }
  return toResult(await invocable.call(admitted, input, keyed, facts), view)
}

async function reportItems(
  items: AsyncIterable<StreamItem>,
  progress: (status: TaskProgressView) => Promise<void>,
): Promise<void> {
  let step = 0
  for await (const item of items) {
    const message = 'comment' in item ? undefined : progressOf(item)
    if (message !== undefined) await progress({ progress: ++step, message }).catch(() => undefined)
  }
}

function progressOf({ event, data }: Exclude<StreamItem, { comment: string }>): string | undefined {
  const step = isRecord(data) && isRecord(data.data) ? data.data : {}
  if (event === 'planning') return String(step.text)
  return event === 'tool_call' ? `Calls ${String(step.name)}` : undefined
}

async function readItems(
  source: AsyncIterable<StreamItem>,
  max: number,
  ended: AbortSignal,
): Promise<StreamItem[]> {
  const read: StreamItem[] = []
  const iterator = source[Symbol.asyncIterator]()
  const end = new Promise<undefined>((resolve) => {
    if (ended.aborted) resolve(undefined)
    ended.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  try {
    while (read.length < max) {
      const found = await Promise.race([iterator.next(), end])
      if (!found || found.done) break
      if (!('comment' in found.value)) read.push(found.value)
    }
  } finally {
    void iterator.return?.().catch(() => undefined)
  }
  return read
}

function takeBoolean(given: Fields, name: string): boolean {
  const value = given[name]
  delete given[name]
  if (value !== undefined && value !== null && typeof value !== 'boolean')
    throw invalid(name, 'bool_type', 'Input should be a valid boolean')
  return value === true
}

type Range = { min: number; max: number; initial: number }

function takeInteger(given: Fields, name: string, { min, max, initial }: Range): number {
  const value = given[name] ?? initial
  delete given[name]
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
    throw invalid(name, 'value_error', `Input should be a whole number from ${min} to ${max}`)
  return value
}
