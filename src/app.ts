import { openChains, wrongNodes } from '#compose/chains.ts'
import { keyWatch, openCustody, rotation } from '#compose/custody.ts'
import { openFeatures } from '#compose/features.ts'
import { openReconciler } from '#compose/reconciler.ts'
import { connectionLimits, rateLimits } from '#compose/settings.ts'
import { foreignWorld, openStore } from '#compose/store.ts'
import { openVenue } from '#compose/venue.ts'
import { type Config, ConfigRefused } from '#config.ts'
import { warningsOf } from '#config-safety.ts'
import { postgresBus } from '#durable/bus.ts'
import { translate } from '#durable/call-faults.ts'
import { ground as makeGround } from '#durable/ground.ts'
import { type QueueFacts, queueFacts } from '#durable/load.ts'
import type { RunnerCounts } from '#durable/runner.ts'
import { upkeep } from '#durable/upkeep.ts'
import { sponsorsTopic } from '#durable/wake.ts'
import { httpEdge } from '#edges/http/http.ts'
import { laneKeeper } from '#features/chains/lane-keeper.ts'
import { pausedSponsors } from '#features/chains/paused-sponsors.ts'
import { probe as makeProbe } from '#features/chains/probe.ts'
import { auditSchedule } from '#features/earn/audit.ts'
import { snapshotSchedule } from '#features/earn/snapshot.ts'
import { renewalSchedule } from '#features/perp/key-renewal.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import type { Failpoints } from '#kernel/failpoint.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { UpstreamUrls } from '#start/place.ts'
import { lanePlan } from '#upstreams/evm/nonce.ts'
import { net as makeNet } from '#upstreams/net.ts'

type Needs = {
  config: Config
  log: Log
  say: (line: string) => void
  databaseUrl: string
  urls: UpstreamUrls
  failpoints: Failpoints
}

const claimPollMs = 250
const upkeepEveryMs = 60_000

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

const workGauges = ({ queueDepth, oldestPendingSeconds }: QueueFacts, { running, slots }: RunnerCounts) => [
  { name: 'tasks_due', help: 'Tasks that are due and that no instance has taken', value: queueDepth },
  { name: 'tasks_due_oldest_seconds', help: 'Age of the oldest of them', value: oldestPendingSeconds ?? 0 },
  { name: 'tasks_running', help: 'Tasks that this instance runs now', value: running },
  { name: 'task_slots', help: 'Tasks that this instance runs at most', value: slots },
]

/** The only place that knows every part: it builds each one and hands it to those that need it. */
export async function app(needs: Needs): Promise<{ url: string } & AsyncDisposable> {
  const { config, log, urls, failpoints } = needs
  for (const sentence of warningsOf(config)) log.warn({}, sentence)
  await using parts = new AsyncDisposableStack()
  let listening = config.BASE_URL
  const baseUrl = () => listening ?? `http://${config.HOST}:${config.PORT}`
  const stores = await openStore(needs, parts)
  const { database } = stores
  const foreign = urls.worldId && (await foreignWorld(database, urls.worldId))
  if (foreign) throw new ConfigRefused([foreign])
  const transactions = { pool: database.pool, run: database.transaction, runAfter: database.transactionAfter }
  const net = parts.use(makeNet({ failpoints, labels: labelsOf(urls) }))
  const ground = parts.use(
    makeGround({
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
  const paused = pausedSponsors({ on: database.pool, clock })
  ground.wake.each((topic) => {
    if (topic === sponsorsTopic) paused.forget()
  })
  const chains = openChains(config, urls, net, paused)
  const wrong = await wrongNodes(chains, config.ENVIRONMENT)
  if (wrong.length > 0) throw new ConfigRefused(wrong)
  const custody = openCustody({ config, urls, net, chains, stores, ground })
  const watch = keyWatch({ keystore: custody.keystore, on: database.pool, log })
  await watch.demand()
  const venue = openVenue({ config, urls, net, log })
  if (venue) parts.use(venue)
  const probe = parts.use(makeProbe({ chains: chains.heads, clock }))
  const { operations, kinds, auth, health, earn, spotWatch } = openFeatures({
    config,
    urls,
    transactions,
    stores,
    ground,
    net,
    chains,
    custody,
    venue,
    probe,
    log,
    baseUrl,
    keyWatch: watch,
  })
  const engine = ground.engine(operations, kinds)
  const reconciling = venue && openReconciler({ config, venue, stores, ground, custody, log })
  const authenticate = (header: string | undefined) => auth.authenticate(header).catch(translate)
  const http = await httpEdge({
    operations,
    call: engine.call,
    authenticate,
    health,
    baseUrl,
    log,
    clock,
    trustProxy: config.TRUST_PROXY,
    corsOrigins: config.CORS_ORIGINS,
    limits: rateLimits(config),
    connections: connectionLimits(config),
    shares: { streamsPerUser: config.STREAMS_PER_USER },
    gauges: async () => [
      ...workGauges(await queueFacts(transactions, clock), engine.runner.counts()),
      ...watch.gauges(),
      ...(venue?.gauges() ?? []),
      ...((await reconciling?.gauges()) ?? []),
      ...((await earn?.gauges()) ?? []),
    ],
  })
  const address = await http.listen({ host: config.HOST, port: config.PORT })
  listening ??= address
  parts.defer(() => http.close())

  const { ports } = chains
  const keeper = laneKeeper({ on: database.pool, transact: ground.transact, ports, plan: lanePlan, log })
  parts.use(keeper.start())
  engine.start()
  if (spotWatch) parts.use(spotWatch).start()
  if (reconciling) parts.use(reconciling.start())
  const schedules = [
    ...(earn ? [snapshotSchedule(clock.now()), auditSchedule(clock.now())] : []),
    ...(spotWatch ? [renewalSchedule(clock.now())] : []),
  ]
  for (const schedule of schedules) await ground.schedules.ensure(database.pool, schedule)
  const keepUp = upkeep({ transactions, clock, log, intervalMs: upkeepEveryMs * 0.8 })
  const rewrap = rotation(custody.keystore, database.pool, log)
  const timer = setInterval(() => {
    // A key that is missing stops the wrapping, and is what the watch has to tell.
    Promise.all([auth.sweep(), keepUp(), rewrap().finally(watch.look)]).catch((error: unknown) =>
      log.warn({ error }, 'the upkeep failed; it is tried again'),
    )
  }, upkeepEveryMs)
  parts.defer(() => clearInterval(timer))
  const held = parts.move()
  return { url: baseUrl(), [Symbol.asyncDispose]: () => held.disposeAsync() }
}
