import { isRecord } from '#kernel/wire/json.ts'
import { callToolName } from './find-operation.ts'

/**
 * Computes how many reads of the rate limit a message costs. A tool call, or a request about a task, costs nothing
 * here, because its operation is counted when it runs. Any other message costs at least one read, even if the protocol
 * library refuses it. A body costs one more read for each 200 values.
 */

type Names = { has(name: string): boolean }

/** Requests of revision 2026-07-28 have this key in `_meta`, and no others do. */
const revisionKey = 'io.modelcontextprotocol/protocolVersion'
/** The library refuses a longer batch as a whole. */
const batchMax = 100
const ofTasks = ['tasks/get', 'tasks/update', 'tasks/cancel']
const knownParams = ['name', 'arguments', '_meta']

const pointsOf: Readonly<Record<string, number>> = { 'tools/list': 20, initialize: 3 }
/** Each value is copied and checked several times, so this many values cost a point. */
const valuesPerPoint = 200

/**
 * Returns how many reads a body costs. If it is not clear whether a message reaches an operation, the message counts as
 * one read; at worst the operation is counted in addition.
 */
export function readPoints(body: unknown, tools: Names): number {
  const ofMessages = messagesOf(body).map((message) =>
    reachesOperation(message, tools) ? 0 : pointsOfAnswer(message),
  )
  return ofMessages.reduce((sum, points) => sum + points, Math.floor(valuesIn(body) / valuesPerPoint))
}

function messagesOf(body: unknown): readonly unknown[] {
  const isBatch = Array.isArray(body) && body.length > 0 && body.length <= batchMax
  return isBatch ? body : [body]
}

function pointsOfAnswer(message: unknown): number {
  const method = isRecord(message) ? String(message.method) : ''
  return Object.hasOwn(pointsOf, method) ? pointsOf[method]! : 1
}

const valuesIn = (value: unknown): number =>
  value !== null && typeof value === 'object'
    ? Object.values(value).reduce((sum: number, each) => sum + valuesIn(each), 1)
    : 1

/** An id is returned with each answer, and so is a progress token, so their length is limited. */
export const idCharactersMax = 256
const isLong = (id: unknown): boolean => typeof id === 'string' && id.length > idCharactersMax
export const hasLongId = (body: unknown): boolean =>
  messagesOf(body).some((message) => {
    if (!isRecord(message)) return false
    const meta = isRecord(message.params) ? message.params._meta : undefined
    return isLong(message.id) || (isRecord(meta) && isLong(meta.progressToken))
  })

export function idOf(body: unknown): string | number | null {
  const id = isRecord(body) ? body.id : null
  return (typeof id === 'string' || typeof id === 'number') && !isLong(id) ? id : null
}

function reachesOperation(message: unknown, tools: Names): boolean {
  if (!isRecord(message) || message.jsonrpc !== '2.0' || !isId(message.id) || !isRecord(message.params))
    return false
  const { method, params } = message
  if (!isMeta(params._meta)) return false
  if (method === 'tools/call') return isToolCall(params, tools)
  return ofTasks.includes(String(method)) && typeof params.taskId === 'string' && isRecent(params)
}

const isId = (id: unknown): boolean => typeof id === 'string' || Number.isSafeInteger(id)

const isRecent = ({ _meta: meta }: Record<string, unknown>): boolean => isRecord(meta) && revisionKey in meta

/**
 * Whether the library accepts the parameters of a tool call. In earlier revisions of the protocol the library refuses
 * wrong ones in a stream whose status is already sent, so such a call must be counted before.
 */
function isToolCall(params: Record<string, unknown>, tools: Names): boolean {
  const { name, arguments: given } = params
  if (given !== undefined && !isRecord(given)) return false
  if (
    !(typeof name === 'string' && (tools.has(name) || (name === callToolName && isNamedCall(given, tools))))
  )
    return false
  return isRecent(params) || Object.keys(params).every((each) => knownParams.includes(each))
}

/** Whether the call of an operation by its name reaches this operation, which then counts it. */
const isNamedCall = (given: Record<string, unknown> | undefined, tools: Names): boolean =>
  given !== undefined &&
  typeof given.name === 'string' &&
  tools.has(given.name) &&
  (given.arguments === undefined || isRecord(given.arguments)) &&
  Object.keys(given).every((each) => each === 'name' || each === 'arguments')

function isMeta(meta: unknown): boolean {
  if (meta === undefined) return true
  if (!isRecord(meta)) return false
  const { progressToken: token, ...others } = meta
  const isPlain = revisionKey in meta || Object.keys(others).length === 0
  return isPlain && (token === undefined || isId(token))
}
