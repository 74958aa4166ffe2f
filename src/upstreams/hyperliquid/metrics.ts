import { counter, gauge, type ReadMetrics } from '#kernel/metrics.ts'
import type { Egress } from './hyperliquid.ts'
import type { VenueStreams } from './stream.ts'

type MetricsDeps = {
  streams: Pick<VenueStreams, 'state'>
  egress: readonly Egress[]
  /** The request weight of one egress address per minute; 0 means that there is no limit. */
  perMinute: number
  skippedCount: () => number
}

export const venueMetrics =
  ({ streams, egress, perMinute, skippedCount }: MetricsDeps): ReadMetrics =>
  () => {
    const { connected, users, connections } = streams.state()
    const limited = [
      gauge(
        'portico_venue_request_weight',
        'Request weight used in the last minute',
        egress.reduce((sum, { budget }) => sum + budget.used(), 0),
      ),
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
        skippedCount(),
      ),
    ]
  }
