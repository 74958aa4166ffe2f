/** A client of the tasks extension: the official one of the extension, on requests as revision 2026-07-28 sends them. */
import {
  type ConnectedMcpSessionPort,
  type JsonRpcResponse,
  type TaskEnabledSession,
  withTasks,
} from '@modelcontextprotocol/ext-tasks/client'
import { tasksExtension } from '#edges/mcp/protocol-task.ts'
import type { ToolReply } from './clients.ts'

type Fields = Record<string, unknown>
type RpcError = { code: number; message: string; data?: Fields }
export type TaskAnswer = ToolReply & {
  resultType: string
  taskId: string
  status: string
  statusMessage: string
  ttlMs: number | null
  result?: ToolReply
}
export type TaskClient = {
  /** One request; throws an error with the code of JSON-RPC. */
  send(method: string, params: Fields): Promise<TaskAnswer>
  /** A session lists the tools as it begins. */
  openSession(): TaskEnabledSession
}

export class RpcFailure extends Error {
  readonly error: RpcError
  constructor(error: RpcError) {
    super(`${error.code} ${error.message}`)
    this.error = error
  }
}

const prefix = 'io.modelcontextprotocol'

export function taskClient(
  url: string,
  { authorization, query = '' }: { authorization: string; query?: string },
): TaskClient {
  let id = 0
  const exchange = async (method: string, params: Fields): Promise<JsonRpcResponse> => {
    const name = params.taskId ?? params.name ?? params.uri
    const reply = await fetch(new URL(`/mcp${query}`, url), {
      method: 'POST',
      headers: {
        authorization,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(name !== undefined && { 'mcp-name': String(name) }),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: ++id,
        method,
        params: {
          ...params,
          _meta: {
            [`${prefix}/protocolVersion`]: '2026-07-28',
            [`${prefix}/clientInfo`]: { name: 'test', version: '1.0.0' },
            [`${prefix}/clientCapabilities`]: { extensions: { [tasksExtension]: {} } },
          },
        },
      }),
    })
    const text = await reply.text()
    const message = JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text) as {
      result?: never
      error?: RpcError
    }
    if (message.error) return { kind: 'error', error: message.error as never }
    if (message.result === undefined) throw new Error(`${reply.status} ${text}`)
    return { kind: 'result', result: message.result }
  }
  const port: ConnectedMcpSessionPort = {
    endpointId: url,
    taskCapabilities: { generation: 'v2', capabilities: {} as never },
    dispatch: (request) => {
      const { method, params = {} } = request as { method: string; params?: Fields }
      return exchange(method, params)
    },
    onServerRequest: () => () => undefined,
    onNotification: () => () => undefined,
    onInvalidated: () => () => undefined,
    invalidated: false,
  }
  return {
    openSession: () => withTasks(port),
    async send(method, params) {
      const answer = await exchange(method, params)
      if (answer.kind === 'error') throw new RpcFailure(answer.error as RpcError)
      return answer.result as never
    },
  }
}
