import type { Net } from '#kernel/wire/upstream-http.ts'
import { createAccountViews } from '#upstreams/hyperliquid/account-view-cache.ts'
import { createHyperliquid, type Egress } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { OnSkipped } from '#upstreams/hyperliquid/invalid-record-filters.ts'
import { venueMetrics } from '#upstreams/hyperliquid/metrics.ts'
import { createVenuePrices } from '#upstreams/hyperliquid/mid-prices.ts'
import { createRateBudget, unlimitedBudget } from '#upstreams/hyperliquid/rate-budget.ts'
import { createSkippedRecords } from '#upstreams/hyperliquid/skipped-record-log.ts'
import { openVenueStreams } from '#upstreams/hyperliquid/stream.ts'
import { openVenueHealth } from '#upstreams/hyperliquid/venue-health.ts'
import type { Core } from './core.ts'
import { venueStreamUrl, venueWeightOf } from './settings.ts'
import type { UpstreamUrls } from './upstream-urls.ts'

type VenueDeps = { core: Core; urls: UpstreamUrls; net: Net }
export type VenueOverrides = {
  /** The request weight per minute that views may use; 0 means no limit. */
  viewWeightPerMinute?: number
}

const schedule = (ms: number, run: () => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/**
 * The venue limits how many users may have streams at one IP address at a time. If the limit is at least `briefFrom`,
 * this many of the slots serve, in turns, all users without a lasting stream.
 */
const briefUsersMax = 2
const briefFrom = 5

type StreamDeps = Pick<Core, 'config' | 'clock' | 'random' | 'log'> & { url: string; onSkipped?: OnSkipped }

export function openStreams({ config, clock, random, log, url, onSkipped }: StreamDeps) {
  const subscribedUsersMax = config.HYPERLIQUID_STREAMED_USERS
  return openVenueStreams({
    url: venueStreamUrl(config, url),
    clock,
    random,
    log,
    subscribedUsersMax,
    // If the venue has no rate limit, requests serve the users without a lasting stream as well as brief streams do.
    briefUsersMax: venueWeightOf(config) === 0 || subscribedUsersMax < briefFrom ? 0 : briefUsersMax,
    ...(onSkipped && { onSkipped }),
  })
}

/** The venue's client and streams of this instance; reads and actions share one rate budget. */
export function openVenue(
  { core, urls: { hyperliquid: url }, net }: VenueDeps,
  overrides: VenueOverrides = {},
) {
  if (!url) return undefined
  const { config, clock, log } = core
  const perMinute = venueWeightOf(config)
  const nowMs = () => performance.now()
  const budgetOf = () =>
    perMinute === 0 ? unlimitedBudget : createRateBudget({ perMinute, nowMs, after: schedule })
  const addresses = config.HYPERLIQUID_EGRESS_ADDRESSES
  const egress: Egress[] =
    addresses.length === 0
      ? [{ budget: budgetOf() }]
      : addresses.map((localAddress) => ({ localAddress, budget: budgetOf() }))
  const skipped = createSkippedRecords({ clock, log })
  const { onSkipped } = skipped
  const streams = openStreams({ ...core, url, onSkipped })
  const shared = createVenuePrices({
    nowMs: () => clock.now().getTime(),
    isStreaming: () => streams.state().hasMids,
  })
  streams.onMids(shared.push)
  const client = createHyperliquid({
    url,
    net,
    clock,
    egress,
    prices: shared,
    onSkipped,
    nodeUrl: config.HYPERLIQUID_INFO_URL,
  })
  const views = createAccountViews({
    venue: client,
    clock,
    subscribedSinceMs: streams.subscribedSinceMs,
    perMinute: overrides.viewWeightPerMinute ?? perMinute * egress.length,
    brief: streams.brief,
  })
  streams.onState((state) => {
    if (state.part === 'account') views.applyPush(state.user, state.part, state.value)
    else if (state.part === 'openOrders') views.applyPush(state.user, state.part, state.value)
    else views.applyPush(state.user, state.part, state.value)
  })
  const background = client.withUrgency('background')
  const health = openVenueHealth({
    ping: () => background.mids(),
    lastMessageMs: streams.lastMessageMs,
    clock,
  })
  return {
    health,
    client,
    views,
    streams,
    egress,
    metrics: { venue: venueMetrics({ streams, egress, perMinute, skippedCount: skipped.count }) },
    async [Symbol.asyncDispose]() {
      await health[Symbol.asyncDispose]()
      await streams[Symbol.asyncDispose]()
    },
  }
}
export type Venue = NonNullable<ReturnType<typeof openVenue>>
