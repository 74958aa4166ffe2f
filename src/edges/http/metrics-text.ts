import type { HistogramSample, Labels, Metric } from '#kernel/metrics.ts'

export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8'

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
const escapeLabel = (text: string): string => escapeHelp(text).replaceAll('"', '\\"')

function labelText(labels: Labels, le?: string): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`)
  if (le !== undefined) pairs.push(`le="${le}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

const histogramLines = (name: string, { labels, buckets, count, sum }: HistogramSample): string[] => [
  ...buckets.map((bucket) => `${name}_bucket${labelText(labels, String(bucket.bound))} ${bucket.count}`),
  `${name}_bucket${labelText(labels, '+Inf')} ${count}`,
  `${name}_sum${labelText(labels)} ${sum}`,
  `${name}_count${labelText(labels)} ${count}`,
]

const sampleLines = (metric: Metric): string[] =>
  metric.type === 'histogram'
    ? metric.samples.flatMap((sample) => histogramLines(metric.name, sample))
    : metric.samples.map(({ labels, value }) => `${metric.name}${labelText(labels)} ${value}`)

export const metricsText = (metrics: readonly Metric[]): string =>
  metrics
    .flatMap((metric) => [
      `# HELP ${metric.name} ${escapeHelp(metric.help)}`,
      `# TYPE ${metric.name} ${metric.type}`,
      ...sampleLines(metric),
    ])
    .map((line) => `${line}\n`)
    .join('')
