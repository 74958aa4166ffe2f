import type { Config } from '#config.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Net } from '#kernel/net.ts'
import type { UpstreamUrls } from '#start/place.ts'
import { accountViews } from '#upstreams/hyperliquid/account-views.ts'
import { type Egress, hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { prices } from '#upstreams/hyperliquid/prices.ts'
import { venueStreams } from '#upstreams/hyperliquid/stream.ts'
import { noBudget, rateBudget } from '#upstreams/hyperliquid/weights.ts'
import { venueStreamUrl, venueWeightOf } from './settings.ts'
import { skippedRecords } from './skipped-records.ts'
import { venueHealth } from './venue-health.ts'

type Needs = { config: Config; urls: UpstreamUrls; net: Net; log: Log }

const later = (ms: number, run: () => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

const usedOf = (egress: readonly Egress[]): number =>
  egress.reduce((sum, { budget }) => sum + budget.used(), 0)

/** Of the users that the venue streams to an address, those that are read in turns, where there are enough places. */
const briefUsersMax = 2
const briefFrom = 5

/** The venue's client and streams of this instance; questions and actions share one budget. */
export function openVenue({ config, urls: { hyperliquid: url }, net, log }: Needs) {
  if (!url) return undefined
  const perMinute = venueWeightOf(config)
  const nowMs = () => performance.now()
  const budgetOf = () => (perMinute === 0 ? noBudget : rateBudget({ perMinute, nowMs, after: later }))
  const addresses = config.HYPERLIQUID_EGRESS_ADDRESSES
  const egress: Egress[] =
    addresses.length === 0
      ? [{ budget: budgetOf() }]
      : addresses.map((localAddress) => ({ localAddress, budget: budgetOf() }))
  const usersMost = config.HYPERLIQUID_STREAMED_USERS
  const skipped = skippedRecords({ clock, log })
  const { onSkipped } = skipped
  const streams = venueStreams({
    url: venueStreamUrl(config, url),
    clock,
    random,
    log,
    usersMost,
    // Where no weight is counted, requests are as good.
    briefUsersMax: perMinute === 0 || usersMost < briefFrom ? 0 : briefUsersMax,
    onSkipped,
  })
  const shared = prices({ nowMs: () => clock.now().getTime(), hears: () => streams.state().tellsMids })
  streams.onMids(shared.told)
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
    followedSinceMs: streams.followedSinceMs,
    perMinute: perMinute * egress.length,
    brief: streams.brief,
  })
  streams.onState((state) => {
    if (state.part === 'account') views.pushed(state.user, state.part, state.value)
    else if (state.part === 'openOrders') views.pushed(state.user, state.part, state.value)
    else views.pushed(state.user, state.part, state.value)
  })
  const background = client.at('background')
  const health = venueHealth({ ask: () => background.mids(), heardMs: streams.heardMs, clock })
  const gauges = () => {
    const { connected, users, connections } = streams.state()
    return [
      { name: 'venue_weight_used', help: 'Request weight of the last minute', value: usedOf(egress) },
      { name: 'venue_stream_connected', help: '1 while the stream stands', value: connected ? 1 : 0 },
      { name: 'venue_stream_users', help: 'Users that are followed by stream', value: users },
      {
        name: 'venue_records_skipped',
        help: 'Records of the venue that were not understood and left out, since the start',
        value: skipped.count(),
      },
      { name: 'venue_stream_connections', help: 'Connections since the start', value: connections },
    ]
  }
  return {
    health: health.state,
    client,
    views,
    streams,
    gauges,
    async [Symbol.asyncDispose]() {
      health[Symbol.dispose]()
      await streams[Symbol.asyncDispose]()
    },
  }
}
export type Venue = NonNullable<ReturnType<typeof openVenue>>
