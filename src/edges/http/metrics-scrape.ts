import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { gauge, type MetricSources, type ReadMetrics, type Sample } from '#kernel/metrics.ts'
import type { Guard } from './document-routes.ts'
import { metricsContentType, metricsText } from './metrics-text.ts'
import type { PathHints } from './nearest-path.ts'
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

/** Only loopback names are accepted, so a page under another name that resolves to this machine is rejected. */
const localHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i
const loopback = /^(?:127\.|::1$|::ffff:127\.)/

type MetricsPage = { guard: Guard; scrape: () => Promise<string>; hints: PathHints }

/** Only a scraper on this machine, directly from loopback, gets metrics; for others the path does not exist. */
export function serveMetrics(
  fastify: FastifyInstance,
  { guard, scrape, hints: { nearest } }: MetricsPage,
): void {
  fastify.get('/metrics', async (request: FastifyRequest, reply: FastifyReply) => {
    const direct = request.headers['x-forwarded-for'] === undefined && request.headers.forwarded === undefined
    const isLocal = localHost.test(request.headers.host ?? '')
    if (!direct || !isLocal || !loopback.test(request.socket.remoteAddress ?? '')) {
      await guard(request, reply)
      throw new Fault('not_found', nearest(request.method, request.url))
    }
    return reply.type(metricsContentType).send(await scrape())
  })
}
