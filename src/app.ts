import { type ComposeDeps, type Composed, compose, type Overrides } from '#compose/compose.ts'
import { createKeyRotation } from '#compose/custody.ts'
import { openMetrics } from '#compose/metrics.ts'
import { connectionLimits, rateLimits } from '#compose/settings.ts'
import { warningsOf } from '#config-safety.ts'
import { createMaintenance } from '#durable/maintenance.ts'
import { throwAsFault } from '#durable/operation-faults.ts'
import { httpEdge } from '#edges/http/http.ts'
import { auditSchedule } from '#features/earn/audit.ts'
import { snapshotSchedule } from '#features/earn/snapshot.ts'
import { renewalSchedule } from '#features/perp/key-renewal.ts'
import { createInvocation } from '#invoke/invocation.ts'
import { repeat } from '#kernel/repeat.ts'

type AppDeps = Omit<ComposeDeps, 'baseUrl'>

/** The HTTP door over all operations. */
async function openDoor(composed: Composed, parts: AsyncDisposableStack) {
  const { config, log, clock, baseUrl, runtime, features } = composed
  const { operations, auth, health } = features
  const authenticate = (header: string | undefined) => auth.authenticate(header).catch(throwAsFault)
  const invocation = createInvocation({
    execute: runtime.invoke,
    authenticate,
    limits: rateLimits(config),
    quotas: { streamsPerUser: config.STREAMS_PER_USER },
  })
  parts.defer(() => invocation.close())
  return httpEdge({
    operations,
    invocation,
    health,
    baseUrl,
    log,
    clock,
    trustProxy: config.TRUST_PROXY,
    corsOrigins: config.CORS_ORIGINS,
    connections: connectionLimits(config),
    metrics: openMetrics(composed),
  })
}

/** What runs in the background: tasks, price checks, comparisons, schedules and maintenance. */
async function startWork(composed: Composed, parts: AsyncDisposableStack): Promise<void> {
  const { config, log, clock, db, transactions, taskEngine, chains, custody, keyMonitor, features } = composed
  const { auth, earn, venueFeatures } = features
  parts.use(chains.nonceRepair.start())
  composed.runtime.start()
  if (venueFeatures) parts.use(venueFeatures.priceLoop).start()
  if (composed.reconciler) parts.use(composed.reconciler.start())
  const schedules = [
    ...(earn ? [snapshotSchedule(clock.now()), auditSchedule(clock.now())] : []),
    ...(venueFeatures ? [renewalSchedule(clock.now())] : []),
  ]
  for (const schedule of schedules) await taskEngine.schedules.ensure(db, schedule)
  const maintain = createMaintenance({ transactions, clock, log, intervalMs: config.MAINTENANCE_MS * 0.8 })
  const rewrap = createKeyRotation(custody.keystore, db, log)
  const runMaintenance = () =>
    // A missing key stops the rewrap; the key monitor reports it.
    Promise.all([auth.sweep(), maintain(), rewrap().finally(keyMonitor.check)])
  parts.use(
    repeat(runMaintenance, {
      everyMs: config.MAINTENANCE_MS,
      onError: (error) => log.warn({ error }, 'maintenance failed; it runs again after the next interval'),
    }),
  )
}

/** Builds every part, opens the door and starts the background work. */
export async function app(
  deps: AppDeps,
  overrides: Overrides = {},
): Promise<{ url: string } & AsyncDisposable> {
  const { config, log } = deps
  for (const sentence of warningsOf(config)) log.warn({}, sentence)
  await using parts = new AsyncDisposableStack()
  let listening = config.BASE_URL
  const baseUrl = () => listening ?? `http://${config.HOST}:${config.PORT}`
  const composed = parts.use(await compose({ ...deps, baseUrl }, overrides))
  await composed.assertConsistent()
  composed.probe.start()
  composed.venue?.health.start()
  const http = await openDoor(composed, parts)
  const address = await http.listen({ host: config.HOST, port: config.PORT })
  listening ??= address
  parts.defer(() => http.close())
  await startWork(composed, parts)
  const owned = parts.move()
  return { url: baseUrl(), [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
