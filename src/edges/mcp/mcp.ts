import type { Invocation } from '#invoke/invocation.ts'
import type { WebDoor, WebRequest, WebRoute } from '#invoke/web-route.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import type { Log } from '#kernel/log.ts'
import { createHostGuard } from './allowed-hosts.ts'
import { createListChanges, type OnUserEvents } from './list-changes.ts'
import { hasLongId, idCharactersMax, readPoints } from './message-cost.ts'
import { createPrompts } from './prompts.ts'
import { createResources } from './resources.ts'
import type { ServerDeps } from './server.ts'
import { serverCard } from './server-card.ts'
import { createSseTransport, type Known, type Mailboxes } from './sse-transport.ts'
import { createTaskRequests } from './task-requests.ts'
import { isToolList, withTools } from './tool-list-answer.ts'
import { selectionReader } from './tool-selection.ts'
import { createToolbox, listKeyOf, type Viewer } from './tools.ts'

export type McpEdgeDeps = {
  operations: readonly Operation[]
  invocation: Invocation
  baseUrl: () => string
  corsOrigins: readonly string[]
  mcpHosts?: readonly string[]
  /** The mailboxes of the HTTP+SSE transport of 2024, which is not served if they are absent. */
  mailboxes?: Mailboxes
  /** The least time from the creation of a task to its deletion, or null if tasks are never deleted. */
  taskTtlMs?: number | null
  /** Whether a person decides for a user with a key pair; nobody does if it is absent. */
  isLinked?: (userId: string) => Promise<boolean>
  onUserEvents?: OnUserEvents
  version: string
  log: Log
  extendMcp?: ServerDeps['extend']
}
export type McpEdge = WebDoor & AsyncDisposable

const bodyBytesMax = 1024 * 1024
const protocolVersions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26']

const refusal = (code: number, message: string): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status: 400 })
const parseError = (message: string): Response => refusal(-32_700, message)
const invalidRequest = (message: string): Response => refusal(-32_600, message)

/**
 * Serves each operation as a tool of the Model Context Protocol. No request needs the state of an earlier one, so any
 * instance can answer it.
 */
export function openMcpEdge(deps: McpEdgeDeps): McpEdge {
  const { operations, invocation, baseUrl, log, version } = deps
  const toolbox = createToolbox(operations, invocation, deps.taskTtlMs)
  const listChanges = createListChanges(deps.onUserEvents ?? (() => ({ [Symbol.dispose]: () => {} })))
  const onError = (error: unknown) => log.warn({ error }, 'MCP request failed')
  const serverDeps: ServerDeps = {
    toolbox,
    prompts: createPrompts(toolbox),
    resources: createResources(toolbox, { operations, baseUrl }),
    taskRequests: createTaskRequests(toolbox),
    version,
    onError,
    bus: listChanges.bus,
    ...(deps.extendMcp && { extend: deps.extendMcp }),
  }
  const assertHost = createHostGuard({ ...deps, hosts: deps.mcpHosts ?? [] })
  let loading: Promise<Loaded> | undefined
  const loaded = () => {
    loading ??= load(serverDeps)
    return loading
  }

  const groups = [...new Set(operations.map(({ group }) => group))]
  const selectionOf = selectionReader(groups, ['session_id'])
  const admit = async ({ headers, address, url }: WebRequest): Promise<Known> => {
    assertHost({ host: headers.host, origin: headers.origin })
    const { authorization } = headers
    const identified = await invocation.identify({ authorization, address })
    return { authorization, selection: selectionOf(url), ...identified }
  }
  const viewerOf = async ({ caller }: Pick<Known, 'caller'>): Promise<Viewer> => ({
    caller,
    isLinked: caller.scheme === 'keypair' && (await deps.isLinked?.(caller.userId)) === true,
  })
  const countReads = async ({ principal }: Known, points: number): Promise<void> => {
    const { fault } = await invocation.limits.consume('read', principal, points)
    if (fault) throw fault
  }
  const answer = async (request: WebRequest, body: unknown, known: Known): Promise<Response> => {
    const { selection } = known
    const points = readPoints(body, { has: (name) => toolbox.find(name, selection) !== undefined })
    if (points > 0) await countReads(known, points)
    if (hasLongId(body)) {
      if (points === 0) await countReads(known, 1)
      return invalidRequest(`An id has at most ${idCharactersMax} characters`)
    }
    const { handler, authInfoOf } = await loaded()
    const { address, id } = request
    let isHandedOver = false
    const handOver = () => {
      isHandedOver = true
    }
    const viewer = () => viewerOf(known)
    const { authorization, caller } = known
    const listKey = async () =>
      listKeyOf(await viewerOf(await invocation.identify({ authorization, address })))
    const response = await listChanges.run(body, { userId: caller.userId, listKey }, () =>
      handler.fetch(toRequest(request, baseUrl()), {
        authInfo: authInfoOf({ ...known, viewer, address, id, body, handOver }),
        ...(body !== undefined && { parsedBody: body }),
      }),
    )
    // The library may refuse a request by its headers or envelope before an operation has counted it.
    if (points === 0 && !isHandedOver && !isStream(response)) await countReads(known, 1)
    if (!isToolList(body)) return response
    return withTools(
      response,
      toolbox.listFor(await viewer(), selection).part,
      request.headers['accept-encoding'],
    )
  }
  const refuseBody: WebRoute<Known>['refuseBody'] = async (fault, known) => {
    await countReads(known, 1)
    if (fault.code !== 'validation') throw fault
    return parseError(fault.message)
  }
  const sse =
    deps.mailboxes &&
    createSseTransport({
      mailboxes: deps.mailboxes,
      limits: invocation.limits,
      admit,
      onError,
      refuseBody,
      answer,
    })
  const route: WebRoute<Known> = {
    path: '/mcp',
    methods: ['GET', 'POST', 'DELETE'],
    bodyBytesMax,
    admit,
    answer,
    refuseBody,
  }
  return {
    routes: [route as WebRoute, ...(sse?.routes ?? [])],
    documents: ['/.well-known/mcp/server-card.json', '/mcp/server-card'].map((path) => ({
      path,
      type: 'application/mcp-server-card+json',
      text: () => JSON.stringify(serverCard({ baseUrl: baseUrl(), version, protocolVersions })),
    })),
    async [Symbol.asyncDispose]() {
      await sse?.close()
      if (loading) await (await loading).handler.close()
    },
  }
}

async function load(deps: ServerDeps) {
  const { createHandler, authInfoOf } = await import('./server.ts')
  return { handler: createHandler(deps), authInfoOf }
}
type Loaded = Awaited<ReturnType<typeof load>>

const isStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false

function toRequest({ method, url, headers, signal }: WebRequest, base: string): Request {
  const pairs = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, [value].flat().join(', ')]],
  )
  return new Request(new URL(url, base), { method, headers: pairs, signal })
}
