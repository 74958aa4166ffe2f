import { isRecord } from '#kernel/wire/json.ts'
import type { ToolResult } from './tool-result.ts'

/**
 * This module shows a durable task in the form of the tasks extension, `io.modelcontextprotocol/tasks`. The protocol
 * calls a task `failed` only if the request itself failed; a task whose tool reports an error is `completed`.
 */

export const tasksExtension = 'io.modelcontextprotocol/tasks'

type TaskHandle = {
  taskId: string
  status: 'working' | 'completed' | 'failed' | 'cancelled'
  statusMessage: string
  createdAt: string
  lastUpdatedAt: string
  ttlMs: number | null
  pollIntervalMs: number
}
type RpcError = { code: number; message: string; data: Record<string, unknown> }
/** `resultType` is also in the answer to `tools/call`; the official client of the extension requires it. */
type FinalResult = ToolResult & { resultType: 'complete' }
export type ProtocolTask = TaskHandle & { result?: FinalResult; error?: RpcError }
export type CreatedTask = TaskHandle & { resultType: 'task'; _meta?: Record<string, unknown> }

export type ReadTask = {
  task_id: string
  status: string
  state: string
  message: string
  error: { code: string; message: string } | null
  created_at: string
  updated_at: string
}

const pollMs = 1_000
/** The poll interval if the next change needs a human, an operator or another service. */
const slowPollMs = 10_000
const slowStates = ['awaiting_approval', 'waiting', 'reconciling', 'review']
const internalErrorCode = -32_603

export const isLive = (status: unknown): boolean => status === 'pending' || status === 'running'

const isInternal = ({ status, error }: ReadTask): boolean => status === 'failed' && error?.code === 'internal'

const statusOf = (task: ReadTask): TaskHandle['status'] => {
  if (isLive(task.status)) return 'working'
  if (task.status === 'cancelled') return 'cancelled'
  return isInternal(task) ? 'failed' : 'completed'
}

function handleOf(task: ReadTask, ttlMs: number | null): TaskHandle {
  return {
    taskId: task.task_id,
    status: statusOf(task),
    statusMessage: task.message,
    createdAt: task.created_at,
    lastUpdatedAt: task.updated_at,
    ttlMs,
    pollIntervalMs: slowStates.includes(task.state) ? slowPollMs : pollMs,
  }
}

export const toCreatedTask = (
  task: ReadTask,
  { _meta, ttlMs }: Pick<ToolResult, '_meta'> & { ttlMs: number | null },
): CreatedTask => ({ ...handleOf(task, ttlMs), resultType: 'task', ...(_meta && { _meta }) })

export function toProtocolTask(task: ReadTask, ttlMs: number | null): ProtocolTask {
  const handle = handleOf(task, ttlMs)
  if (handle.status === 'completed') return { ...handle, result: resultOf(task) }
  if (handle.status !== 'failed') return handle
  const { message, ...data } = task.error!
  return { ...handle, error: { code: internalErrorCode, message, data } }
}

const resultOf = (task: ReadTask): FinalResult => ({
  resultType: 'complete',
  content: [{ type: 'text', text: JSON.stringify(task) }],
  structuredContent: { ...task },
  isError: task.status === 'failed',
})

/** Whether the client declared tasks for this one request. */
export function declaresTasks(envelope: unknown): boolean {
  const declared = isRecord(envelope) ? envelope['io.modelcontextprotocol/clientCapabilities'] : undefined
  return isRecord(declared) && isRecord(declared.extensions) && isRecord(declared.extensions[tasksExtension])
}
