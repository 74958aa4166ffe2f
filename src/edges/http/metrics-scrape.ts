import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { gauge, type MetricSources, type ReadMetrics, type Sample } from '#kernel/metrics.ts'
import { metricsText } from './metrics-text.ts'
import { processMetrics } from './process-metrics.ts'

const sourceTimeoutMs = 1_000

/**
 * Scrapes within this time share one text: local scrapers need no credential, so many scrapes must not cost more than
 * one.
 */
const sharedMs = 1_000

export function scraper(sources: MetricSources, nowMs: () => number): () => Promise<string> {
  const scrapes = createTtlCache<string>({ ttlMs: sharedMs, entriesMax: 1, nowMs })
  const scrape = createScrape({ process: processMetrics(), ...sources })
  return () => scrapes.get('scrape', scrape)
}

const createScrape = (sources: MetricSources) => async (): Promise<string> => {
  const readings = await Promise.all(Object.values(sources).map(readInTime))
  const names = Object.keys(sources)
  const up: Sample[] = readings.map((reading, at) => ({
    labels: { source: names[at]! },
    value: reading ? 1 : 0,
  }))
  const complete = gauge('portico_metrics_source_up', '1 where the measurements of a part could be read', up)
  return metricsText([...readings.flatMap((reading) => reading ?? []), complete])
}

const readInTime = (read: ReadMetrics) =>
  withTimeLimit(Promise.try(read), sourceTimeoutMs).catch(() => undefined)
