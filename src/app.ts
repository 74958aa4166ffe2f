import { findNodeProblems, openChains } from '#compose/chains.ts'
import { createKeyMonitor, createKeyRotation, openCustody } from '#compose/custody.ts'
import { openFeatures } from '#compose/features.ts'
import { openReconciler } from '#compose/reconciler.ts'
import { connectionLimits, rateLimits } from '#compose/settings.ts'
import { findWorldMismatch, openStore } from '#compose/store.ts'
import type { UpstreamUrls } from '#compose/upstream-urls.ts'
import { openVenue } from '#compose/venue.ts'
import { type Config, ConfigRefused } from '#config.ts'
import { warningsOf } from '#config-safety.ts'
import { createEngine } from '#durable/engine.ts'
import { createMaintenance } from '#durable/maintenance.ts'
import { sponsorsTopic } from '#durable/notifier.ts'
import { throwAsFault } from '#durable/operation-faults.ts'
import { postgresBus } from '#durable/postgres-notify.ts'
import { type QueueStats, readQueueStats } from '#durable/queue-stats.ts'
import type { RunnerCounts } from '#durable/runner.ts'
import { httpEdge } from '#edges/http/http.ts'
import { createNonceRepair } from '#engines/evm-batch/nonce-repair.ts'
import { pausedSponsors } from '#engines/evm-batch/paused-sponsors.ts'
import { chainHealth as makeProbe } from '#features/chains/chain-health.ts'
import { auditSchedule } from '#features/earn/audit.ts'
import { snapshotSchedule } from '#features/earn/snapshot.ts'
import { renewalSchedule } from '#features/perp/key-renewal.ts'
import { createInvocation } from '#invoke/invocation.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import type { Failpoints } from '#kernel/failpoint.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { planNonceRepair } from '#upstreams/evm/nonce-repair-plan.ts'
import { net as makeNet } from '#upstreams/net.ts'

type AppDeps = {
  config: Config
  log: Log
  printLine: (line: string) => void
  databaseUrl: string
  urls: UpstreamUrls
  failpoints: Failpoints
}

const claimPollMs = 250

/** Speaking names of the upstreams, for sentences, metrics and failpoints. */
function labelsOf({ evm, solana, hyperliquid, prices, faucet }: UpstreamUrls): Record<string, string> {
  const named = {
    ethereum: evm['1'],
    base: evm['8453'],
    arbitrum: evm['42161'],
    'arbitrum-sepolia': evm['421614'],
    polygon: evm['137'],
    solana,
    hyperliquid,
    prices,
    faucet,
  }
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, url]) => (url ? [[new URL(url).origin, name]] : [])),
  )
}

const workGauges = ({ queueDepth, oldestPendingSeconds }: QueueStats, { running, slots }: RunnerCounts) => [
  { name: 'tasks_due', help: 'Tasks that are due and that no instance has taken', value: queueDepth },
  { name: 'tasks_due_oldest_seconds', help: 'Age of the oldest of them', value: oldestPendingSeconds ?? 0 },
  { name: 'tasks_running', help: 'Tasks that this instance runs now', value: running },
  { name: 'task_slots', help: 'Tasks that this instance runs at most', value: slots },
]

/** The only place that knows every part: it builds each one and hands it to those that need it. */
export async function app(needs: AppDeps): Promise<{ url: string } & AsyncDisposable> {
  const { config, log, urls, failpoints } = needs
  for (const sentence of warningsOf(config)) log.warn({}, sentence)
  await using parts = new AsyncDisposableStack()
  let listening = config.BASE_URL
  const baseUrl = () => listening ?? `http://${config.HOST}:${config.PORT}`
  const stores = await openStore(needs, parts)
  const { database } = stores
  const worldMismatch = urls.worldId && (await findWorldMismatch(database, urls.worldId))
  if (worldMismatch) throw new ConfigRefused([worldMismatch])
  const transactions = {
    pool: database.pool,
    run: database.transaction,
    pipelined: database.pipelinedTransaction,
  }
  const net = parts.use(makeNet({ failpoints, labels: labelsOf(urls) }))
  const taskEngine = parts.use(
    createEngine({
      transactions,
      bus: postgresBus(database),
      clock,
      random,
      log,
      baseUrl,
      heartbeats: stores.heartbeats.pool,
      options: { slots: config.RUNNER_SLOTS, leaseMs: config.LEASE_MS, pollMs: claimPollMs },
    }),
  )
  const paused = pausedSponsors({ db: database.pool, clock })
  taskEngine.notifier.onAny((topic) => {
    if (topic === sponsorsTopic) paused.invalidate()
  })
  const chains = openChains(config, urls, net, paused)
  const nodeProblems = await findNodeProblems(chains, config.ENVIRONMENT)
  if (nodeProblems.length > 0) throw new ConfigRefused(nodeProblems)
  const custody = openCustody({ config, urls, net, chains, stores, taskEngine })
  const keyMonitor = createKeyMonitor({ keystore: custody.keystore, db: database.pool, log })
  await keyMonitor.assertUsable()
  const venue = openVenue({ config, urls, net, log })
  if (venue) parts.use(venue)
  const probe = parts.use(makeProbe({ chains: chains.heads, clock }))
  const { operations, kinds, auth, health, earn, priceLoop } = openFeatures({
    config,
    urls,
    transactions,
    stores,
    taskEngine,
    net,
    chains,
    custody,
    venue,
    probe,
    log,
    baseUrl,
    keyMonitor: keyMonitor,
  })
  const runtime = taskEngine.createRuntime(operations, kinds)
  const reconciler = venue && openReconciler({ config, venue, stores, taskEngine, custody, log })
  const authenticate = (header: string | undefined) => auth.authenticate(header).catch(throwAsFault)
  const invocation = createInvocation({
    execute: runtime.invoke,
    authenticate,
    limits: rateLimits(config),
  })
  parts.defer(() => invocation.close())
  const http = await httpEdge({
    operations,
    invocation,
    authenticate,
    health,
    baseUrl,
    log,
    clock,
    trustProxy: config.TRUST_PROXY,
    corsOrigins: config.CORS_ORIGINS,
    connections: connectionLimits(config),
    quotas: { streamsPerUser: config.STREAMS_PER_USER },
    gauges: async () => [
      ...workGauges(await readQueueStats(transactions, clock), runtime.runner.counts()),
      ...keyMonitor.gauges(),
      ...(venue?.gauges() ?? []),
      ...((await reconciler?.gauges()) ?? []),
      ...((await earn?.gauges()) ?? []),
    ],
  })
  const address = await http.listen({ host: config.HOST, port: config.PORT })
  listening ??= address
  parts.defer(() => http.close())

  const { ports } = chains
  const nonceRepair = createNonceRepair({
    db: database.pool,
    transact: taskEngine.transact,
    ports,
    plan: planNonceRepair,
    log,
  })
  parts.use(nonceRepair.start())
  runtime.start()
  if (priceLoop) parts.use(priceLoop).start()
  if (reconciler) parts.use(reconciler.start())
  const schedules = [
    ...(earn ? [snapshotSchedule(clock.now()), auditSchedule(clock.now())] : []),
    ...(priceLoop ? [renewalSchedule(clock.now())] : []),
  ]
  for (const schedule of schedules) await taskEngine.schedules.ensure(database.pool, schedule)
  const maintain = createMaintenance({ transactions, clock, log, intervalMs: config.MAINTENANCE_MS * 0.8 })
  const rewrap = createKeyRotation(custody.keystore, database.pool, log)
  const timer = setInterval(() => {
    // A missing key stops the rewrap; the key monitor reports it.
    Promise.all([auth.sweep(), maintain(), rewrap().finally(keyMonitor.check)]).catch((error: unknown) =>
      log.warn({ error }, 'maintenance failed; it runs again after the next interval'),
    )
  }, config.MAINTENANCE_MS)
  parts.defer(() => clearInterval(timer))
  const owned = parts.move()
  return { url: baseUrl(), [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
