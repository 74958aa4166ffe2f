export type Labels = Readonly<Record<string, string>>
export type Sample = { labels: Labels; value: number }
export type Bucket = { bound: number; count: number }
export type HistogramSample = {
  labels: Labels
  /** The counts up to each bound; values above the last bound are not included. */
  buckets: readonly Bucket[]
  count: number
  sum: number
}
export type Metric = { name: string; help: string } & (
  | { type: 'counter' | 'gauge'; samples: readonly Sample[] }
  | { type: 'histogram'; samples: readonly HistogramSample[] }
)
/** Returns the metrics of one part at each scrape, from memory or by one short query. */
export type ReadMetrics = () => readonly Metric[] | Promise<readonly Metric[]>
/** There is one reader per part, so that a part that fails does not take the others with it. */
export type MetricSources = Readonly<Record<string, ReadMetrics>>

const samplesOf = (value: number | readonly Sample[]): readonly Sample[] =>
  typeof value === 'number' ? [{ labels: {}, value }] : value

export const gauge = (name: string, help: string, value: number | readonly Sample[]): Metric => ({
  name,
  help,
  type: 'gauge',
  samples: samplesOf(value),
})

export const counter = (name: string, help: string, value: number | readonly Sample[]): Metric => ({
  name,
  help,
  type: 'counter',
  samples: samplesOf(value),
})

const keyOf = (labels: Labels): string => Object.values(labels).join('\u0000')

export type Counter = { add(labels: Labels): void; read(): Metric }

/** Creates a counter. All calls of `add` must name the same labels in the same order. */
export function createCounter(name: string, help: string): Counter {
  const series = new Map<string, { labels: Labels; value: number }>()
  return {
    add(labels) {
      const key = keyOf(labels)
      const known = series.get(key)
      if (known) known.value += 1
      else series.set(key, { labels, value: 1 })
    },
    read: () => counter(name, help, [...series.values()]),
  }
}

export type Observe = (value: number) => void
export type Histogram = {
  /**
   * Returns the function that records values under these labels; a caller on a hot path requests the function only
   * once.
   */
  series(labels: Labels): Observe
  read(): Metric
}

/**
 * Creates a histogram. `bounds` must ascend, and all calls of `series` must name the same labels in the same order.
 */
export function createHistogram(name: string, help: string, bounds: readonly number[]): Histogram {
  type Series = { labels: Labels; counts: number[]; count: number; sum: number; observe: Observe }
  const known = new Map<string, Series>()
  const create = (labels: Labels): Series => {
    const counts = bounds.map(() => 0)
    const series: Series = {
      labels,
      counts,
      count: 0,
      sum: 0,
      observe(value) {
        let index = 0
        while (index < bounds.length && value > bounds[index]!) index += 1
        if (index < bounds.length) counts[index] = counts[index]! + 1
        series.count += 1
        series.sum += value
      },
    }
    return series
  }
  return {
    series(labels) {
      const key = keyOf(labels)
      const found = known.get(key) ?? create(labels)
      known.set(key, found)
      return found.observe
    },
    read: () => ({
      name,
      help,
      type: 'histogram',
      samples: [...known.values()].map(({ labels, counts, count, sum }) => ({
        labels,
        buckets: cumulative(bounds, counts),
        count,
        sum,
      })),
    }),
  }
}

function cumulative(bounds: readonly number[], counts: readonly number[]): Bucket[] {
  let below = 0
  return bounds.map((bound, index) => {
    below += counts[index]!
    return { bound, count: below }
  })
}
