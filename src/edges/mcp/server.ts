import {
  type CallToolRequest,
  type CallToolResult,
  createMcpHandler,
  type GetPromptRequest,
  type GetPromptResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceRequest,
  type ReadResourceResult,
  ResourceNotFoundError,
  Server,
  type ServerContext,
  SUPPORTED_PROTOCOL_VERSIONS,
  type Tool,
} from '@modelcontextprotocol/server'
import type { Caller } from '#kernel/caller.ts'
import { isRecord } from '#kernel/json.ts'
import { type CallFacts, callTool } from './call-tool.ts'
import type { Prompts } from './prompts.ts'
import type { Resources } from './resources.ts'
import { serverInfo } from './server-card.ts'
import { bugResult } from './tool-result.ts'
import type { Toolbox } from './tools.ts'

/** The only file that uses the values of the protocol library: it is loaded with the first request. */

export { SUPPORTED_PROTOCOL_VERSIONS }

/** One request of a client, as its transport hands it to the handlers. */
export type McpCall = {
  caller: Caller
  authorization: string | undefined
  address: string
  id: string
  /** The body as it was parsed, whose numbers keep their digits. */
  body: unknown
}
export type ServerDeps = {
  toolbox: Toolbox
  prompts: Prompts
  resources: Resources
  version: string
  onError: (error: unknown) => void
  /** Changes each new server, for a door with tools of its own. */
  extend?: (server: Server, own: OwnHandlers) => void
}

const instructions =
  'Portico trades and reads across chains and venues. Operations that move money become tasks: send wait=true, or poll ' +
  'tasks_get, or call tasks_wait. Choose one idempotency_key for each intent and REUSE it for every repetition. An error ' +
  'result has a code, says what to change, and whether the same call can succeed later.'

const listTtlMs = 300_000
const publicList = { ttlMs: listTtlMs, cacheScope: 'public' } as const
const privateList = { ttlMs: listTtlMs, cacheScope: 'private' } as const

export function createServer({ toolbox, prompts, resources, version, onError, extend }: ServerDeps): Server {
  const server = new Server(serverInfo(version), {
    capabilities: { tools: {}, resources: {}, prompts: {} },
    instructions,
    cacheHints: {
      'tools/list': privateList,
      'prompts/list': publicList,
      'resources/list': publicList,
      'resources/templates/list': publicList,
      'server/discover': publicList,
    },
  })
  const own = handlersOf({ toolbox, prompts, resources, onError }, server)
  server.setRequestHandler('tools/list', own.listTools)
  server.setRequestHandler('tools/call', own.callTool)
  server.setRequestHandler('prompts/list', own.listPrompts)
  server.setRequestHandler('prompts/get', own.getPrompt)
  server.setRequestHandler('resources/list', own.listResources)
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }))
  server.setRequestHandler('resources/read', own.readResource)
  extend?.(server, own)
  return server
}

export type OwnHandlers = ReturnType<typeof handlersOf>

function handlersOf(
  { toolbox, prompts, resources, onError }: Pick<ServerDeps, 'toolbox' | 'prompts' | 'resources' | 'onError'>,
  server: Server,
) {
  return {
    listTools: (_request: unknown, context: ServerContext) => ({
      tools: [...toolbox.listFor(callOf(context).caller)] as Tool[],
    }),
    async callTool({ params }: CallToolRequest, context: ServerContext): Promise<CallToolResult> {
      const given = argumentsOf(callOf(context), context, params.arguments)
      const result = await callTool(toolbox, params.name, given, factsOf(context)).catch((error: unknown) => {
        onError(error)
        return bugResult(error)
      })
      if (!result)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${params.name.slice(0, 64)}`)
      return server.projectCallToolResult(result, toolbox.byName.get(params.name)?.view.outputSchema)
    },
    listPrompts: () => ({ prompts: [...prompts.list] }),
    getPrompt({ params }: GetPromptRequest): GetPromptResult {
      const found = prompts.get(params.name, params.arguments ?? {})
      if (found === undefined || typeof found === 'string')
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, found ?? 'There is no such prompt')
      return found
    },
    listResources: () => ({ resources: [...resources.list] }),
    async readResource({ params }: ReadResourceRequest, context: ServerContext): Promise<ReadResourceResult> {
      const found = await resources.read(params.uri, factsOf(context))
      if (!found) throw new ResourceNotFoundError(params.uri)
      return { contents: [found] }
    },
  }
}

export const authInfoOf = (call: McpCall) => ({
  token: '',
  clientId: call.caller.agentId,
  scopes: [...call.caller.scopes],
  extra: { call },
})

function callOf({ http }: ServerContext): McpCall {
  const call = http?.authInfo?.extra?.call
  if (call === undefined) throw new Error('a request without its call')
  return call as McpCall
}

function factsOf(context: ServerContext): CallFacts {
  const { authorization, address, id } = callOf(context)
  const { _meta: meta, signal, notify } = context.mcpReq
  const token = meta?.progressToken
  return {
    authorization,
    address,
    id,
    signal,
    ...(token !== undefined && {
      progress: async ({ progress, message }) =>
        notify({ method: 'notifications/progress', params: { progressToken: token, progress, message } }),
    }),
  }
}

/** The arguments as they were parsed: the library copies what it validates, and a copy has lost the digits of numbers. */
function argumentsOf({ body }: McpCall, { mcpReq }: ServerContext, copied: unknown): Record<string, unknown> {
  const message = [body].flat().find((each) => isRecord(each) && each.id === mcpReq.id)
  const params = isRecord(message) && isRecord(message.params) ? message.params : {}
  if (isRecord(params.arguments)) return params.arguments
  return isRecord(copied) ? copied : {}
}

export const createHandler = (deps: ServerDeps) =>
  createMcpHandler(() => createServer(deps), { onerror: deps.onError })
