/** Upper bounds in seconds: from an answer out of memory to the longest wait for a task. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 90]
const name = 'http_request_duration_seconds'

type Series = { labels: string; counts: number[]; count: number; sum: number }

/**
 * A histogram of request times in the Prometheus text format. Counting is on the path of every request, where hashing
 * the labels as a library does costs more than the routing.
 */
export function latencyHistogram() {
  const known = new Map<string, Series>()
  const seriesOf = (method: string, route: string, status: number): Series => {
    const key = `${method} ${status} ${route}`
    const found = known.get(key)
    if (found) return found
    const labels = `method="${method}",route="${escaped(route)}",status="${status}"`
    const made = { labels, counts: bounds.map(() => 0), count: 0, sum: 0 }
    known.set(key, made)
    return made
  }
  return {
    observe(method: string, route: string, status: number, seconds: number): void {
      const series = seriesOf(method, route, status)
      const index = bounds.findIndex((bound) => seconds <= bound)
      if (index >= 0) series.counts[index] = series.counts[index]! + 1
      series.count += 1
      series.sum += seconds
    },
    text(): string {
      const lines = [
        `# HELP ${name} Time from the request line to the end of the answer, by route pattern`,
        `# TYPE ${name} histogram`,
      ]
      for (const { labels, counts, count, sum } of known.values()) {
        let below = 0
        for (const [index, bound] of bounds.entries()) {
          below += counts[index]!
          lines.push(`${name}_bucket{le="${bound}",${labels}} ${below}`)
        }
        lines.push(`${name}_bucket{le="+Inf",${labels}} ${count}`)
        lines.push(`${name}_sum{${labels}} ${sum}`, `${name}_count{${labels}} ${count}`)
      }
      return lines.map((line) => `${line}\n`).join('')
    },
  }
}

export const escaped = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
