import { counter, gauge, type Metric } from '#kernel/metrics.ts'
import type { Net } from '#kernel/wire/net.ts'
import { accountViews } from '#upstreams/hyperliquid/account-views.ts'
import { type Egress, hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { prices } from '#upstreams/hyperliquid/prices.ts'
import { rateBudget, unlimitedBudget } from '#upstreams/hyperliquid/rate-budget.ts'
import type { OnSkipped } from '#upstreams/hyperliquid/records.ts'
import { venueStreams } from '#upstreams/hyperliquid/stream.ts'
import type { Core } from './core.ts'
import { venueStreamUrl, venueWeightOf } from './settings.ts'
import { skippedRecords } from './skipped-records.ts'
import type { UpstreamUrls } from './upstream-urls.ts'
import { venueHealth } from './venue-health.ts'

type VenueDeps = { core: Core; urls: UpstreamUrls; net: Net }
export type VenueOverrides = {
  /** Request weight per minute that views may use; 0: no limit. */
  viewWeightPerMinute?: number
}

const schedule = (ms: number, run: () => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

const usedOf = (egress: readonly Egress[]): number =>
  egress.reduce((sum, { budget }) => sum + budget.used(), 0)

/** Of the stream places per address, those that serve all other users in turns, where there are enough places. */
const briefUsersMax = 2
const briefFrom = 5

type StreamDeps = Pick<Core, 'config' | 'clock' | 'random' | 'log'> & { url: string; onSkipped?: OnSkipped }

export function openStreams({ config, clock, random, log, url, onSkipped }: StreamDeps) {
  const subscribedUsersMax = config.HYPERLIQUID_STREAMED_USERS
  return venueStreams({
    url: venueStreamUrl(config, url),
    clock,
    random,
    log,
    subscribedUsersMax,
    // Without a rate limit, requests serve as well.
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
    perMinute === 0 ? unlimitedBudget : rateBudget({ perMinute, nowMs, after: schedule })
  const addresses = config.HYPERLIQUID_EGRESS_ADDRESSES
  const egress: Egress[] =
    addresses.length === 0
      ? [{ budget: budgetOf() }]
      : addresses.map((localAddress) => ({ localAddress, budget: budgetOf() }))
  const skipped = skippedRecords({ clock, log })
  const { onSkipped } = skipped
  const streams = openStreams({ ...core, url, onSkipped })
  const shared = prices({ nowMs: () => clock.now().getTime(), isStreaming: () => streams.state().hasMids })
  streams.onMids(shared.push)
  const client = hyperliquid({
    url,
    net,
    clock,
    egress,
    prices: shared,
    onSkipped,
    nodeUrl: config.HYPERLIQUID_INFO_URL,
  })
  const views = accountViews({
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
  const health = venueHealth({ ping: () => background.mids(), lastMessageMs: streams.lastMessageMs, clock })
  const metrics = (): Metric[] => {
    const { connected, users, connections } = streams.state()
    const limited = [
      gauge('portico_venue_request_weight', 'Request weight used in the last minute', usedOf(egress)),
      gauge(
        'portico_venue_request_weight_limit',
        'Request weight that this instance may use per minute',
        perMinute * egress.length,
      ),
    ]
    return [
      ...(perMinute > 0 ? limited : []),
      gauge(
        'portico_venue_stream_connected',
        '1 while the stream of the venue is connected',
        connected ? 1 : 0,
      ),
      gauge('portico_venue_stream_users', 'Users with a stream subscription', users),
      counter('portico_venue_stream_connections_total', 'Connections made to the stream', connections),
      counter(
        'portico_venue_records_skipped_total',
        'Venue records skipped because their form is unknown',
        skipped.count(),
      ),
    ]
  }
  return {
    health,
    client,
    views,
    streams,
    egress,
    metrics,
    async [Symbol.asyncDispose]() {
      await health[Symbol.asyncDispose]()
      await streams[Symbol.asyncDispose]()
    },
  }
}
export type Venue = NonNullable<ReturnType<typeof openVenue>>
