import type { Config } from '#config.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Net } from '#kernel/net.ts'
import type { UpstreamUrls } from '#start/place.ts'
import { hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { prices } from '#upstreams/hyperliquid/prices.ts'
import { venueStreams } from '#upstreams/hyperliquid/stream.ts'
import { noBudget, rateBudget } from '#upstreams/hyperliquid/weights.ts'
import { venueStreamUrl, venueWeightOf } from './settings.ts'

type Needs = { config: Config; urls: UpstreamUrls; net: Net; log: Log }

const later = (ms: number, run: () => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** The venue as this instance reaches it: its questions and actions out of one budget, and one ear for its streams. */
export function openVenue({ config, urls: { hyperliquid: url }, net, log }: Needs) {
  if (!url) return undefined
  const perMinute = venueWeightOf(config)
  const nowMs = () => performance.now()
  const budget = perMinute === 0 ? noBudget : rateBudget({ perMinute, nowMs, after: later })
  const usersMost = config.HYPERLIQUID_STREAMED_USERS
  const streams = venueStreams({ url: venueStreamUrl(config, url), clock, random, log, usersMost })
  const shared = prices({ nowMs: () => clock.now().getTime(), hears: () => streams.state().tellsMids })
  streams.onMids(shared.told)
  const client = hyperliquid({ url, net, clock, budget, prices: shared })
  const gauges = () => {
    const { connected, users, connections } = streams.state()
    return [
      { name: 'venue_weight_used', help: 'Request weight of the last minute', value: budget.used() },
      { name: 'venue_stream_connected', help: '1 while the stream stands', value: connected ? 1 : 0 },
      { name: 'venue_stream_users', help: 'Users that are followed by stream', value: users },
      { name: 'venue_stream_connections', help: 'Connections since the start', value: connections },
    ]
  }
  return { client, streams, budget, gauges, [Symbol.asyncDispose]: () => streams[Symbol.asyncDispose]() }
}
export type Venue = NonNullable<ReturnType<typeof openVenue>>
