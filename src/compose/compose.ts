import { ConfigRefused } from '#config.ts'
import { contracts } from '#contracts.ts'
import { openChainHealth } from '#features/chains/chain-health.ts'
import { createUniverseReader } from '#features/chat/universe.ts'
import { createInnerCalls } from '#invoke/inner-calls.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { type GuardedFetch, openGuardedFetch } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { openWorldClock } from '#upstreams/world-clock/world-clock.ts'
import { type AgentDeps, openAgentClient } from './agent-client.ts'
import { type ChainOverrides, findNodeProblems, openChains } from './chains.ts'
import { type Core, type CoreDeps, type CoreOverrides, openCore } from './core.ts'
import { type CustodyOverrides, openCustody } from './custody.ts'
import { type FeatureOverrides, openFeatures } from './features.ts'
import { type MailOverrides, openMails } from './mails.ts'
import { openReconciler, type ReconcilerOverrides, venueRecords } from './reconciler.ts'
import { joinSections } from './section.ts'
import { imageGuard, modelPrices, webhookGuard } from './settings.ts'
import { findWorldMismatch } from './store.ts'
import type { UpstreamUrls } from './upstream-urls.ts'
import { openVenue, type VenueOverrides } from './venue.ts'

export type ComposeDeps = CoreDeps &
  AgentDeps & {
    /** The URLs of the upstreams; only an upstream with a URL is served. */
    urls: UpstreamUrls
  }
/** A test or a bench replaces these parts; a part without an override is that of production. */
export type Overrides = CoreOverrides &
  ChainOverrides &
  CustodyOverrides &
  MailOverrides &
  VenueOverrides &
  FeatureOverrides &
  ReconcilerOverrides & {
    /** Wraps the HTTP client of all upstreams. */
    wrapNet?: (net: Net) => Net
    /** Fetches the addresses that strangers name. */
    strangers?: GuardedFetch
    /** Posts webhooks to the addresses of users. */
    webhookHttp?: GuardedFetch
    /** Fetches the images that the image service names. */
    imageFiles?: GuardedFetch
  }

/** Readable names of the upstreams, for error texts, metrics and failpoints. */
function labelsOf(urls: UpstreamUrls): Record<string, string> {
  const { evm, polymarket, control, worldId, ...services } = urls
  const named = {
    ethereum: evm['1'],
    base: evm['8453'],
    arbitrum: evm['42161'],
    'arbitrum-sepolia': evm['421614'],
    polygon: evm['137'],
    ...services,
  }
  const labels = Object.entries(named).flatMap(([name, url]) => (url ? [[new URL(url).origin, name]] : []))
  const predictions = Object.values(polymarket ?? {}).map((url) => [new URL(url).origin, 'polymarket'])
  return Object.fromEntries([...labels, ...predictions])
}

type ScheduleClockDeps = { core: Core; control: string | undefined; net: Net }
/** In the local environment the clock of schedules is that of the world, so that days pass when a person advances it. */
async function openScheduleClock(
  { core: { config, clock, log, taskEngine }, control, net }: ScheduleClockDeps,
  overrides: Overrides,
  parts: AsyncDisposableStack,
): Promise<Clock> {
  if (overrides.clock || config.ENVIRONMENT !== 'local' || control === undefined) return clock
  const worldClock = parts.use(await openWorldClock({ url: control, net, clock, log }))
  worldClock.onJump(taskEngine.announceSlots)
  return worldClock
}

/**
 * The composition root: builds every part except the servers, and hands each part to those that need it. It starts
 * nothing: `app.ts` opens the servers and starts the work.
 */
export async function compose(deps: ComposeDeps, overrides: Overrides = {}) {
  const { urls, failpoints } = deps
  await using parts = new AsyncDisposableStack()
  // The HTTP client closes after the core, so that steps under way at a shutdown still get their replies.
  const client = parts.use(createHttpClient({ failpoints, labels: labelsOf(urls) }))
  const net = overrides.wrapNet?.(client) ?? client
  const strangers = parts.use(overrides.strangers ?? openGuardedFetch())
  const webhookHttp = parts.use(overrides.webhookHttp ?? openGuardedFetch(webhookGuard(deps.config)))
  const imageFiles = parts.use(overrides.imageFiles ?? openGuardedFetch(imageGuard(urls)))
  // The agent client closes after the core too, so that turns under way move to another instance and none fails.
  const agent = parts.use(openAgentClient(deps, overrides))
  const core = parts.use(await openCore(deps, overrides))
  const { config, clock, stores, taskEngine } = core
  const chains = parts.use(openChains({ core, urls, net }, overrides))
  const scheduleClock = await openScheduleClock({ core, control: urls.control, net }, overrides, parts)
  const mails = openMails(core, net, overrides)
  if (mails.mailer) parts.use(mails.mailer)
  const custody = openCustody({ core, urls, net, chains, mailQueue: mails.mailQueue }, overrides)
  const venue = openVenue({ core, urls, net }, overrides)
  if (venue) parts.use(venue)
  const universe = createUniverseReader({ contracts, table: chains.table, venue: venue?.client })
  const probe = parts.use(openChainHealth({ chains: chains.heads, clock }))
  const features = openFeatures(
    {
      core,
      scheduleClock,
      urls,
      net,
      chains,
      custody,
      venue,
      probe,
      webhookHttp,
      imageFiles,
      modelPrices: urls.model === undefined ? undefined : modelPrices(config),
      mails,
      agent,
      universe,
      innerCalls: () => innerCalls,
    },
    overrides,
  )
  const runtime = taskEngine.createRuntime(features.operations, features.kinds)
  const innerCalls = createInnerCalls(runtime.invoke)
  const reconciler = venue && openReconciler({ core, venue, custody }, overrides)
  const belowSections = [chains, custody, mails, venue ?? {}, venueRecords(core), reconciler ?? {}]
  const owned = parts.move()
  return {
    ...core,
    chains,
    upstreamMetrics: client.metrics,
    mails,
    strangers,
    /**
     * Loads what creates the answerer of chats, for an agent service in this process. A start does not load it, because
     * no turn needs it before the first chat.
     */
    async loadAnswererOf() {
      const [{ openChatModels }, { createAnswererOf }] = await Promise.all([
        import('#agent/chat-models.ts'),
        import('#agent/create-answerer.ts'),
      ])
      return createAnswererOf(openChatModels({ core, url: urls.model, net: client }))
    },
    custody,
    venue,
    probe,
    features,
    runtime,
    /**
     * The operations, task kinds, jobs and metrics of all sections, and of the parts that the sections use, joined into
     * one list each.
     */
    joined: joinSections([features, ...belowSections]),
    /** Throws where database, nodes or keys do not match, before anything is written or signed. */
    async assertConsistent(): Promise<void> {
      const worldMismatch = urls.worldId && (await findWorldMismatch(stores.database, urls.worldId))
      if (worldMismatch) throw new ConfigRefused([worldMismatch])
      const nodeProblems = await findNodeProblems(chains, config.ENVIRONMENT)
      if (nodeProblems.length > 0) throw new ConfigRefused(nodeProblems)
      const keyProblems = await custody.keyMonitor.findProblems()
      if (keyProblems.length > 0) throw new ConfigRefused(keyProblems)
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
export type Composed = Awaited<ReturnType<typeof compose>>
