import { createCounter, createHistogram, gauge, type Metric } from '#kernel/metrics.ts'
import type { CursorCounts } from './cursor-sweep.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Attempt } from './post-message.ts'

/** The numbers of webhooks are those of all instances; every other figure is of this instance alone. */

const secondBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function createWebhookMetrics() {
  const attempts = createCounter('portico_webhook_attempts_total', 'Requests to webhooks by their result')
  const disabled = createCounter(
    'portico_webhooks_disabled_total',
    'Webhooks that were disabled, by the reason',
  )
  const duration = createHistogram(
    'portico_webhook_attempt_seconds',
    'Duration of requests to webhooks',
    secondBounds,
  )
  const observe = duration.series({})
  return {
    onAttempt({ error, durationMs }: Attempt) {
      attempts.add({ result: error === null ? 'delivered' : 'failed' })
      observe(durationMs / 1_000)
    },
    onDisabled: (reason: string) => disabled.add({ reason }),
    read({ running, counts }: Pick<Dispatcher, 'running' | 'counts'>): Metric[] {
      const found = counts()
      const of = (state: keyof CursorCounts) => ({ labels: { state }, value: found[state] })
      const { quick, new: fresh, slow } = running()
      return [
        gauge('portico_webhooks', 'Webhooks by state; behind: an event waits, failing: it is tried again', [
          of('enabled'),
          of('disabled'),
          of('failing'),
          of('behind'),
        ]),
        gauge('portico_webhook_deliveries_running', 'Webhooks that this instance delivers to', [
          { labels: { share: 'all' }, value: quick + fresh + slow },
          { labels: { share: 'new' }, value: fresh },
          { labels: { share: 'slow' }, value: slow },
        ]),
        attempts.read(),
        disabled.read(),
        duration.read(),
      ]
    },
  }
}
