import type { Registry } from 'prom-client'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { gauge, type Metric, type MetricSources, type ReadMetrics, type Sample } from '#kernel/metrics.ts'
import { metricsText } from './metrics-text.ts'

const sourceTimeoutMs = 1_000
/** A delay without a sample yet: the histogram answers no number, or the largest one. */
const unmeasured = /^nodejs_eventloop_lag\w+(?:\{[^}]*\})? (?:NaN|9223372036\.\d+|9\.22\d*e\+?\d+)\n/gm
/** Gauges that end in `_total`, which only a counter may; the same numbers by type have names that conform. */
const nonconforming = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** Scrapers of this machine need no credential, so what they cost does not grow with their number. */
const sharedMs = 1_000

/** The text of a scrape, shared by those who ask within a second: Node's own measurements, then those of each source. */
export function scraper(sources: MetricSources, nowMs: () => number): () => Promise<string> {
  const scrapes = createTtlCache<string>({ ttlMs: sharedMs, entriesMax: 1, nowMs })
  const scrape = createScrape(sources)
  return () => scrapes.get('scrape', scrape)
}

function createScrape(sources: MetricSources): () => Promise<string> {
  let registry: Promise<Registry> | undefined
  return async () => {
    registry ??= processRegistry()
    const [process, readings] = await Promise.all([
      registry.then((made) => made.metrics()),
      Promise.all(Object.values(sources).map(readInTime)),
    ])
    const names = Object.keys(sources)
    const up: Sample[] = readings.map((reading, at) => ({
      labels: { source: names[at]! },
      value: reading ? 1 : 0,
    }))
    const complete = gauge(
      'portico_metrics_source_up',
      '1 where the measurements of a part could be read',
      up,
    )
    // The library spells a missing number in a form that the format does not allow.
    const ofProcess = process.replaceAll(/ Nan$/gm, ' NaN').replaceAll(unmeasured, '')
    return ofProcess + metricsText([...readings.flatMap((reading) => reading ?? []), complete])
  }
}

/**
 * Event-loop delay, memory, processor and garbage collection. Loaded and counted from the first scrape on: a start
 * without a scrape need not load a hundred modules.
 */
async function processRegistry(): Promise<Registry> {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of nonconforming) registry.removeSingleMetric(name)
  return registry
}

/** Undefined where the part fails or takes too long. */
const readInTime = (read: ReadMetrics): Promise<readonly Metric[] | undefined> =>
  withTimeLimit(Promise.try(read), sourceTimeoutMs).catch(() => undefined)
