import { type ComposeDeps, type Composed, compose, type Overrides } from '#compose/compose.ts'
import { openForgottenExecutionSearch } from '#compose/forgotten-execution-search.ts'
import { openMetrics } from '#compose/metrics.ts'
import { retentionJobs } from '#compose/retention.ts'
import { connectionLimits, rateLimits, taskTtlMs, venueChainId } from '#compose/settings.ts'
import { warningsOf } from '#config-safety.ts'
import { createLinks } from '#edges/http/answer-links.ts'
import { createFileDoor, type OpenFile } from '#edges/http/file-route.ts'
import { type HttpEdgeDeps, openHttpEdge } from '#edges/http/http.ts'
import { createProviderEventDoor, type ProviderEvents } from '#edges/http/provider-events-route.ts'
import { type McpEdgeDeps, openMcpEdge } from '#edges/mcp/mcp.ts'
import { createCheckoutPages } from '#edges/oauth/checkout-pages.ts'
import { NotificationEvent } from '#features/notifications/event-types.ts'
import { createInvocation, type Invocation, type InvocationDeps } from '#invoke/invocation.ts'
import type { AgentServiceDeps, OwnAgentService } from './agent/agent-service.ts'
import { throwAsFault } from './durable/accept/faults.ts'
import type { StoredEvent } from './durable/events/event-log.ts'
import { userTopic } from './durable/events/notifier.ts'
import { createLedgerAudit } from './durable/ledger/audit.ts'
import { holdNotice } from './durable/time/money-hold.ts'
import { createMaintenance } from './durable/upkeep/maintenance.ts'
import { landingHeaders, landingPage } from './edges/oauth/landing-page.ts'
import { createOAuthEdge, type OAuthEdgeDeps } from './edges/oauth/provider/oauth-edge.ts'
import { createProxyEdge, proxiedMetadata } from './edges/oauth/provider/proxy-edge.ts'
import { serverMetadata } from './edges/oauth/provider/server-metadata.ts'
import { repeat } from './kernel/async/repeat.ts'
import { plainSchema } from './kernel/contract/decimal-fields.ts'
import { release } from './release.ts'
import { personOf } from './store/person-of-user.ts'

type AppDeps = Omit<ComposeDeps, 'baseUrl' | 'agentAddress'>

export type DoorDeps = InvocationDeps &
  Omit<HttpEdgeDeps, 'invocation' | 'webDoors' | 'authorizationServer' | 'landing'> &
  Omit<McpEdgeDeps, 'invocation'> & {
    /** Opens a file by its signed address; absent if nothing stores files. */
    openFile?: OpenFile
    /** Takes the events of the payment provider; absent if no plans are sold. */
    providerEvents?: ProviderEvents
    /** The parts of the sign-in; absent if people cannot sign in. */
    oauth?: Pick<
      OAuthEdgeDeps,
      'oauth' | 'fetch' | 'freshSignInSeconds' | 'chainName' | 'signUp' | 'createPersonKey'
    >
  }

export function doorDepsOf(composed: Composed): DoorDeps {
  const { config, log, clock, db, baseUrl, runtime, features, taskEngine } = composed
  const { operations, auth, discovery, oauth, images, subscriptions } = features
  const { providerEvents } = subscriptions
  return {
    operations,
    execute: runtime.invoke,
    authenticate: (header) => auth.authenticate(header).catch(throwAsFault),
    authenticateBackend: (key) => images.authenticateBackend(key).catch(throwAsFault),
    openFile: (address) => images.files.open(address).catch(throwAsFault),
    ...(providerEvents && {
      providerEvents: {
        ...providerEvents,
        receive: (bytes: Uint8Array, header: string | undefined) =>
          providerEvents.receive(bytes, header).catch(throwAsFault),
      },
    }),
    health: discovery.health,
    limits: rateLimits(config),
    quotas: { streamsPerUser: config.STREAMS_PER_USER },
    connections: connectionLimits(config),
    trustProxy: config.TRUST_PROXY,
    corsOrigins: config.CORS_ORIGINS,
    mcpHosts: config.MCP_HOSTS,
    mailboxes: taskEngine.mailboxes,
    taskTtlMs: taskTtlMs(config),
    isLinked: async (userId) => (await personOf(db, userId))?.contestedAt === null,
    onUserEvents: (userId, listener) => taskEngine.notifier.on(userTopic(userId), listener),
    version: release,
    isLocal: config.ENVIRONMENT === 'local',
    metrics: openMetrics(composed),
    baseUrl,
    log,
    clock,
    ...(oauth && {
      oauth: {
        oauth,
        fetch: composed.strangers.fetch,
        freshSignInSeconds: config.FRESH_SIGN_IN_SECONDS,
        chainName: composed.chains.nameOf,
        signUp: (person, address) => auth.signUp(person, address).catch(throwAsFault),
        createPersonKey: (...given) => auth.createPersonKey(...given).catch(throwAsFault),
      },
    }),
  }
}

/** Opens the gateway's own authorization server, or a proxy of an external one. */
function openAuthorizationServer(deps: OAuthEdgeDeps) {
  const { baseUrl } = deps
  const { external: server, federation } = deps.oauth
  if (server) {
    const own = federation && createOAuthEdge(deps)
    return {
      issuer: () => server.issuer,
      metadata: () => proxiedMetadata(server, baseUrl()),
      mount: createProxyEdge({ ...deps, server, own }),
      hasPages: own !== undefined,
    }
  }
  return {
    issuer: baseUrl,
    metadata: async () => serverMetadata(baseUrl()),
    mount: createOAuthEdge(deps).mount,
    hasPages: true,
  }
}

/** Opens the invocation of operations, which all transports share, and the MCP and HTTP servers. */
export async function openDoors(deps: DoorDeps) {
  await using parts = new AsyncDisposableStack()
  const invocation = createInvocation(deps)
  parts.defer(() => invocation.close())
  const mcp = parts.use(openMcpEdge({ ...deps, invocation }))
  const { oauth } = deps
  const authorizationServer =
    oauth && openAuthorizationServer({ ...deps, ...oauth, invocation, limits: invocation.limits })
  const hasPages = authorizationServer?.hasPages === true
  const http = await openHttpEdge({
    ...deps,
    invocation,
    landing: {
      html: () => landingPage({ ...deps, baseUrl: deps.baseUrl(), hasPages }),
      headers: landingHeaders(),
    },
    webDoors: [mcp, ...pageDoors(deps, invocation.limits)],
    ...(authorizationServer && { authorizationServer }),
  })
  parts.defer(() => http.close())
  const owned = parts.move()
  return { invocation, http, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** The doors below HTTP that serve no operation. */
const pageDoors = ({ openFile, providerEvents }: DoorDeps, limits: Invocation['limits']) => [
  ...(openFile ? [createFileDoor(openFile, limits)] : []),
  ...(providerEvents ? [createProviderEventDoor(providerEvents, limits), createCheckoutPages()] : []),
]

/** Returns a function that adds to an event the same links that HTTP clients get with the event. */
function eventLinks({ baseUrl, features }: Composed): (event: StoredEvent) => unknown {
  const addLinks = createLinks(features.operations, baseUrl)(plainSchema(NotificationEvent))
  return (event) => (addLinks ? addLinks(event) : event)
}

async function startWork(composed: Composed, parts: AsyncDisposableStack): Promise<void> {
  const { clock, db, taskEngine, chains, joined } = composed
  parts.use(chains.nonceRepair.start())
  composed.runtime.start()
  const { venue, features } = composed
  parts.use(
    openForgottenExecutionSearch({ core: composed, chains, venue, predictions: features.predictions }),
  )
  const show = eventLinks(composed)
  for (const start of joined.starters) parts.use(start(show))
  for (const schedule of joined.schedules) await taskEngine.schedules.ensure(db, schedule(clock.now()))
  startMaintenance(composed, parts)
}

function startMaintenance(composed: Composed, parts: AsyncDisposableStack): void {
  const { config, log, transactions, taskEngine, joined } = composed
  const { pool } = transactions
  const everyMs = config.MAINTENANCE_MS
  const maintenance = createMaintenance({ pool, instanceId: taskEngine.instanceId, log, everyMs }).start([
    ...retentionJobs(composed),
    createLedgerAudit({ ...transactions, log }),
  ])
  const repetitions = Object.entries(joined.keyJobs).map(([job, run]) =>
    repeat(run, {
      everyMs,
      onError: (error) =>
        log.warn({ error, job }, 'maintenance failed; it runs again after the next interval'),
    }),
  )
  // The shutdown does not wait for these jobs: servers and tasks close while a job ends, and closing the pool ends the
  // job's query.
  for (const each of [maintenance, ...repetitions]) parts.defer(() => void each[Symbol.asyncDispose]())
}

type OwnServiceDeps = Pick<ComposeDeps, 'config'> &
  Pick<AgentServiceDeps, 'log'> & { loadAnswererOf: () => Promise<AgentServiceDeps['answererOf']> }

/** Opens the configured agent service, or one in this process, which starts with the first chat. */
export function openAgentService({
  config: { AGENT_URL: url, AGENT_KEY: key = '' },
  log,
  loadAnswererOf,
}: OwnServiceDeps) {
  let service: Promise<OwnAgentService> | undefined
  const load = async () => {
    const { openOwnAgentService } = await import('./agent/agent-service.ts')
    return openOwnAgentService({ log, answererOf: await loadAnswererOf() })
  }
  return {
    agentAddress: async () => {
      if (url) return { url, key }
      service ??= load()
      return (await service).address()
    },
    async [Symbol.asyncDispose]() {
      await (await service)?.[Symbol.asyncDispose]()
    },
  }
}

export type App = {
  url: string
  /** Loads the code that only signatures need. A signature that is requested before that waits for the same load. */
  loadSigning(): Promise<void>
} & AsyncDisposable

export async function app(deps: AppDeps, overrides: Overrides = {}): Promise<App> {
  const { config, log } = deps
  for (const sentence of warningsOf(config)) log.warn({}, sentence)
  await using parts = new AsyncDisposableStack()
  let listening = config.BASE_URL
  const baseUrl = () => listening ?? `http://${config.HOST}:${config.PORT}`
  const { agentAddress } = parts.use(
    openAgentService({ config, log, loadAnswererOf: () => composed.loadAnswererOf() }),
  )
  const composed: Composed = parts.use(await compose({ ...deps, agentAddress, baseUrl }, overrides))
  await composed.assertConsistent()
  const { chains, venue } = composed
  await composed.taskEngine.time.open(chains.nonceRepair.compare, [
    ...chains.svmPorts.keys().map((chainId) => ({ chainId, afterFailover: true })),
    ...(venue ? [{ chainId: venueChainId, afterFailover: false }] : []),
  ])
  composed.probe.start()
  composed.venue?.health.start()
  const { http } = parts.use(await openDoors(doorDepsOf(composed)))
  const address = await http.listen({ host: config.HOST, port: config.PORT })
  listening ??= address
  await startWork(composed, parts)
  for (const hold of composed.taskEngine.holds.list()) deps.printLine(`hold   ${holdNotice(hold)}`)
  const owned = parts.move()
  return {
    url: baseUrl(),
    loadSigning: composed.custody.loadSigning,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
