import type { ServerResponse } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { llmsText, skillText } from '#invoke/agent-documents.ts'
import type { Invocation } from '#invoke/invocation.ts'
import { parseJson } from '#invoke/json-body.ts'
import type { WebDoor } from '#invoke/web-route.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault, internalFault } from '#kernel/contract/fault.ts'
import { alternatives } from '#kernel/contract/nearest-names.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import type { Log } from '#kernel/log.ts'
import type { MetricSources } from '#kernel/metrics.ts'
import type { NumberSources } from '#kernel/wire/json.ts'
import { createLinks } from './answer-links.ts'
import { type StreamSettings, streamDefaults } from './byte-stream.ts'
import { type ConnectionLimits, createSockets, unlimitedConnections } from './connection-limits.ts'
import { errorCatalog, readGuard, serveDocs, serveDocument } from './document-routes.ts'
import {
  addHeaders,
  answerPreflight,
  type CommonHeaders,
  commonHeaders,
  hasTwoHosts,
  isPreflight,
  pushBudget,
  requestIds,
  securityHeaders,
} from './headers.ts'
import { createJsonSender, type SendJson } from './json-answer.ts'
import { scraper, serveMetrics } from './metrics-scrape.ts'
import { type PathHints, pathHints } from './nearest-path.ts'
import { openapiText } from './openapi.ts'
import { releaseNote } from './openapi-intro.ts'
import { type HttpDeps, mount } from './operation-route.ts'
import { faultNamed, faultOf, print } from './problem.ts'
import { type RequestContext, type RequestContexts, requestContexts } from './request-context.ts'
import { isRequestLogged, logRequest, traceIdOf } from './request-log.ts'
import { type HttpMetrics, httpMetrics } from './request-metrics.ts'
import { type Landing, serveRoot } from './root-page.ts'
import { createRouteTable, type RouteTable } from './route-table.ts'
import type { EventStream } from './sse.ts'
import { createClientErrors } from './unparsable-requests.ts'
import { mountWebRoute } from './web-route.ts'
import { type AuthorizationServerDocuments, serveWellKnown, whyNoPages } from './well-known.ts'

type Health = { body: object; down: boolean }

export type HttpEdgeDeps = {
  operations: readonly Operation[]
  invocation: Invocation
  health: () => Health | Promise<Health>
  /** The base URL is a function because a port of 0 is known only after listening. */
  baseUrl: () => string
  version: string
  /** Whether chains, venues and money are those of the local world. */
  isLocal: boolean
  landing: Landing
  trustProxy: readonly string[]
  corsOrigins: readonly string[]
  log: Log
  clock: Clock
  connections?: ConnectionLimits
  metrics?: MetricSources
  sse?: StreamSettings
  webDoors?: readonly WebDoor[]
  authorizationServer?: AuthorizationServerDocuments & { mount: (fastify: FastifyInstance) => void }
}

export type HttpEdge = {
  fastify: FastifyInstance
  listen(at: { host: string; port: number }): Promise<string>
  close(): Promise<void>
}

const bodyLimitBytes = 256 * 1024
const headerLimitBytes = 16 * 1024
/** How long a closing server lets open requests last before it cuts their connections. */
const drainMs = 5_000
const healthPath = '/health'

export async function openHttpEdge(deps: HttpEdgeDeps): Promise<HttpEdge> {
  const { operations, invocation, baseUrl, log } = deps
  const openEventStreams = new Set<EventStream>()
  const measured = httpMetrics()
  const contexts = requestContexts(requestEnded(log, measured))
  const common = commonHeaders(deps.corsOrigins)
  const sendJson = createJsonSender(common, contexts)
  const sendFault = faultSender(deps, contexts, measured)
  const connections = createSockets(deps.connections ?? unlimitedConnections, log)
  const fastify = server(deps, sendFault, connections.isAnswering)
  connections.watch(fastify.server)
  const routes = createRouteTable(fastify)
  readJson(fastify, invocation.sources)
  addRequestHooks(fastify, deps, { routes, contexts, measured, common })
  fastify.setErrorHandler(sendFault)

  const routeDeps: HttpDeps = {
    contexts,
    common,
    sendJson,
    metrics: measured,
    openEventStreams,
    log,
    sse: deps.sse ?? streamDefaults,
    linksOf: createLinks(operations, baseUrl),
  }
  for (const operation of operations) {
    if (operation.entry.path !== healthPath) mount(fastify, invocation.prepare(operation), routeDeps)
  }
  serveHealth(fastify, deps.health, { sendJson })
  for (const route of deps.webDoors?.flatMap((door) => door.routes) ?? [])
    mountWebRoute(fastify, route, routeDeps)
  const hints = pathHints(operations, { signIn: whyNoPages(deps.authorizationServer) })
  const guardRead = readGuard(invocation.limits)
  // Unknown paths are answered before the body is read; otherwise anybody could have large bodies parsed.
  fastify.addHook('onRequest', (request, reply, next) => {
    if (!request.is404) return next()
    guardRead(request, reply)
      .then(() => void notFound(request, reply, { routes, hints }))
      .catch(next)
  })
  const documentText = openapiText(operations, releaseNote(deps))
  serveDocument(fastify, {
    guards: guardRead,
    path: '/openapi.json',
    text: () => documentText(baseUrl()),
  })
  serveDocument(fastify, { guards: guardRead, path: '/error-catalog.json', text: errorCatalog })
  for (const [path, type, write] of [
    ['/llms.txt', 'text/plain; charset=utf-8', llmsText],
    ['/skill.md', 'text/markdown; charset=utf-8', skillText],
  ] as const)
    serveDocument(fastify, { guards: guardRead, path, type, text: () => write(operations, baseUrl()) })
  for (const document of deps.webDoors?.flatMap(({ documents }) => documents) ?? [])
    serveDocument(fastify, { guards: guardRead, ...document })
  serveWellKnown(fastify, guardRead, { baseUrl, authorizationServer: deps.authorizationServer })
  deps.authorizationServer?.mount(fastify)
  serveMetrics(fastify, {
    guard: guardRead,
    scrape: scraper({ http: measured.read, ...deps.metrics }, () => deps.clock.now().getTime()),
    hints,
  })
  serveDocs(fastify, guardRead)
  serveRoot(fastify, guardRead, deps)

  return {
    fastify,
    listen: ({ host, port }) => fastify.listen({ host, port }),
    async close() {
      contexts.close()
      for (const events of openEventStreams) events.finish()
      const cut = setTimeout(() => fastify.server.closeAllConnections(), drainMs)
      const stopSweeping = connections.closeIdle()
      await fastify.close()
      stopSweeping()
      clearTimeout(cut)
    },
  }
}

type SendFault = (error: unknown, request: FastifyRequest, reply: FastifyReply) => void

function server(
  { clock, baseUrl, trustProxy }: HttpEdgeDeps,
  sendFault: SendFault,
  isAnswering: Parameters<typeof createClientErrors>[2],
): FastifyInstance {
  return Fastify({
    genReqId: requestIds(clock),
    bodyLimit: bodyLimitBytes,
    trustProxy: trustProxy.length > 0 ? [...trustProxy] : false,
    // This time limit covers only the receipt of a request, so it cuts neither a wait nor a stream.
    requestTimeout: 30_000,
    // This time exceeds the idle time of load balancers, which would otherwise reuse a connection that is closing.
    keepAliveTimeout: 75_000,
    http: {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: headerLimitBytes,
      // The body stream of a request that has no body would cost a sixth of the whole request.
      optimizeEmptyRequests: true,
    },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 1_024 },
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => {
      reply.headers({ ...securityHeaders, 'x-request-id': request.id })
      sendFault(error, request, reply)
    },
    clientErrorHandler: createClientErrors(clock, baseUrl, isAnswering),
  })
}

/** Only JSON bodies are accepted. An empty body counts as no body, with any content type. */
function readJson(fastify: FastifyInstance, sources: NumberSources): void {
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, bytes: Buffer) => {
      const encoding = request.headers['content-encoding'] ?? 'identity'
      if (bytes.length > 0 && encoding !== 'identity') throw compressedBody(encoding)
      return parseJson(bytes, sources)
    },
  )
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, async (_: FastifyRequest, bytes: Buffer) => {
    if (bytes.length > 0) throw faultNamed('unsupported_media_type')
    return undefined
  })
}

/** The status that proxies log for a client that left before the answer began. */
const abandonedStatus = 499

const compressedBody = (encoding: string): Fault =>
  new Fault(
    'unsupported_media_type',
    `Compressed bodies are not read; send it without content-encoding: ${encoding.slice(0, 32)}`,
  )

type RequestParts = {
  routes: RouteTable
  contexts: RequestContexts
  measured: HttpMetrics
  common: CommonHeaders
}

function addRequestHooks(
  fastify: FastifyInstance,
  { log, trustProxy }: HttpEdgeDeps,
  { routes, contexts, measured, common }: RequestParts,
): void {
  let warnsOfProxy = trustProxy.length === 0
  // The hooks use callbacks: a promise for each of them would be most of their cost.
  fastify.addHook('onRequest', (request, reply, next) => {
    contexts.begin(request, reply)
    measured.started()
    if (contexts.isClosing()) {
      return next(new Fault('unavailable', 'The server is about to stop', { extras: { retry_after: 1 } }))
    }
    if (hasTwoHosts(request.raw)) return next(faultNamed('bad_request'))
    if (warnsOfProxy && request.headers['x-forwarded-for'] !== undefined) {
      warnsOfProxy = false
      log.warn(
        { address: request.ip },
        'X-Forwarded-For arrives and TRUST_PROXY is empty: all clients behind that proxy count as one address',
      )
    }
    const methods = isPreflight(request) ? routes.methodsAt(request.url) : []
    if (methods.length > 0) answerPreflight(reply, methods, { isAllowed: common.isAllowedOrigin(request) })
    else next()
  })
  // Answers of operations bypass Fastify's `onSend`; the JSON sender gives them the same headers as this hook.
  fastify.addHook('onSend', (request, reply, _payload, next) => {
    const pairs = common.pairs(request)
    pushBudget(pairs, contexts.find(reply)?.admitted?.budget)
    addHeaders(reply, pairs)
    if (contexts.isClosing()) reply.header('connection', 'close')
    next()
  })
}

const nameOf = ({ routeOptions: { config, url } }: FastifyRequest): string =>
  config.operation ?? url ?? 'unknown'

const requestEnded =
  (log: Log, measured: HttpMetrics) =>
  (context: RequestContext, response: ServerResponse): void => {
    const { request, mode, startedMs, admitted } = context
    const ms = performance.now() - startedMs
    const status = response.headersSent ? response.statusCode : abandonedStatus
    measured.ended(mode, context.operation ?? nameOf(request), status, ms)
    if (!isRequestLogged(log, status)) return
    logRequest(log, {
      request_id: request.id,
      method: request.method,
      route: request.routeOptions.url ?? 'unknown',
      url: request.url,
      status,
      ms,
      address: request.ip,
      agent_id: admitted?.caller?.agentId,
      trace_id: traceIdOf(request.headers.traceparent),
      left: !response.writableFinished,
    })
  }

function faultSender(
  { log, baseUrl }: HttpEdgeDeps,
  contexts: RequestContexts,
  measured: HttpMetrics,
): SendFault {
  return (error, request, reply) => {
    // A client that aborted its upload reads no answer, and the abort is no error of the gateway.
    const isAbandoned = request.raw.socket.destroyed && !request.raw.complete
    const fault =
      faultOf(error) ??
      (isAbandoned ? faultNamed('bad_request', error) : internalFault(error, { mayHaveActed: false }))
    if (fault.code === 'internal') {
      log.error({ request_id: request.id, error: fault.cause ?? fault }, 'request failed')
    }
    measured.faulted(fault.code)
    const { accept } = request.headers
    const { status, headers, body } = print(fault, { requestId: request.id, accept, baseUrl: baseUrl() })
    if (contexts.isClosing()) reply.header('connection', 'close')
    reply.code(status).headers(headers).send(body)
  }
}

type KnownPaths = { routes: RouteTable; hints: PathHints }

function notFound(
  { method, url }: FastifyRequest,
  reply: FastifyReply,
  { routes, hints }: KnownPaths,
): FastifyReply {
  const methods = routes.methodsAt(url)
  if (methods.length === 0) throw new Fault('not_found', hints.nearest(method, url))
  if (method === 'OPTIONS') return reply.code(204).header('allow', methods.join(', ')).send()
  const callable = methods.filter((name) => name !== 'HEAD' && name !== 'OPTIONS')
  const changes = method === 'GET' ? [] : hints.changesBelow(url)
  const sentence = `This path does not take ${method}: send ${alternatives([...callable, ...changes])}`
  throw new Fault('method_not_allowed', sentence, { extras: { allow: methods } })
}

/** Health answers under any load and without a credential, because load balancers and operators need it then. */
function serveHealth(
  fastify: FastifyInstance,
  health: HttpEdgeDeps['health'],
  { sendJson }: { sendJson: SendJson },
): void {
  let last: { body: object; text: string } | undefined
  fastify.get(healthPath, (request, reply) => {
    const send = ({ body, down }: Health): void => {
      // All requests within half a second get the same report object, so its text is made once.
      if (last?.body !== body) last = { body, text: JSON.stringify(body) }
      sendJson(request, reply, last.text, down ? { status: 503, pairs: ['retry-after', '2'] } : undefined)
    }
    const report = health()
    if (report instanceof Promise) report.then(send).catch((error: unknown) => void reply.send(error))
    else send(report)
  })
}
