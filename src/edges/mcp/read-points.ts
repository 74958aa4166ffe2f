import { isRecord } from '#kernel/json.ts'
import { waitTool } from './tools.ts'

/**
 * Each message costs a point: a call of a tool or a request about a task that of its operation, any other message a read,
 * also one that the protocol refuses.
 */

type Names = { has(name: string): boolean }

/** In `_meta` of each request of revision 2026-07-28, and of no other one. */
const revisionKey = 'io.modelcontextprotocol/protocolVersion'
/** The library refuses a longer batch whole. */
const batchMax = 100
const ofTasks = ['tasks/get', 'tasks/update', 'tasks/cancel']
const knownParams = ['name', 'arguments', '_meta']

/** How many reads a body costs. A message in doubt is one: at worst it is counted by its operation as well. */
export function readPoints(body: unknown, tools: Names): number {
  const isBatch = Array.isArray(body) && body.length > 0 && body.length <= batchMax
  const messages: readonly unknown[] = isBatch ? body : [body]
  return messages.filter((message) => !reachesOperation(message, tools)).length
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

/** The library accepts the parameters: of a former revision it answers wrong ones in a stream, after its status. */
function isToolCall(params: Record<string, unknown>, tools: Names): boolean {
  const { name, arguments: given } = params
  if (typeof name !== 'string' || !(name === waitTool || tools.has(name))) return false
  if (given !== undefined && !isRecord(given)) return false
  return isRecent(params) || Object.keys(params).every((each) => knownParams.includes(each))
}

function isMeta(meta: unknown): boolean {
  if (meta === undefined) return true
  if (!isRecord(meta)) return false
  const { progressToken: token, ...others } = meta
  const isPlain = revisionKey in meta || Object.keys(others).length === 0
  return isPlain && (token === undefined || isId(token))
}
