import type { Registry } from 'prom-client'
import { escaped, latencyHistogram } from './latency-histogram.ts'

export type GaugeReading = { name: string; help: string; value: number; labels?: Record<string, string> }
/** Readings of other parts, asked for at each scrape. */
export type ReadGauges = () => Promise<readonly GaugeReading[]>

const gaugesTimeoutMs = 1_000
/** A delay that nothing was sampled of yet: the histogram answers no number, or the largest one. */
const unmeasured = /^nodejs_eventloop_lag\w+(?:\{[^}]*\})? (?:NaN|9223372036\.\d+|9\.22\d*e\+?\d+)\n/gm

export function metrics(readGauges: ReadGauges | undefined) {
  let registry: Promise<Registry> | undefined
  const requests = latencyHistogram()
  let inFlight = 0
  let streams = 0
  const own = (): GaugeReading[] => [
    { name: 'http_requests_in_flight', help: 'Requests being answered', value: inFlight },
    { name: 'sse_streams_open', help: 'Open event streams', value: streams },
  ]

  return {
    started(): void {
      inFlight += 1
    },
    ended(method: string, route: string, status: number, ms: number): void {
      inFlight -= 1
      requests.observe(method, route, status, ms / 1_000)
    },
    streamOpened(): void {
      streams += 1
    },
    streamClosed(): void {
      streams -= 1
    },
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    async text(): Promise<string> {
      registry ??= processRegistry()
      // What has not been measured yet is spelt so by the format; the library writes it otherwise.
      const process = (await (await registry).metrics())
        .replaceAll(/ Nan$/gm, ' NaN')
        .replaceAll(unmeasured, '')
      const others = readGauges ? await within(readGauges) : []
      return process + requests.text() + printGauges([...own(), ...others])
    },
  }
}
export type Metrics = ReturnType<typeof metrics>

/**
 * Event-loop delay, memory, processor and garbage collection. Loaded and counted from the first scrape on: a start that
 * nobody scrapes need not wait for a hundred modules.
 */
async function processRegistry(): Promise<Registry> {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}

/** A part that hangs must not keep the numbers of the others from being read. */
async function within(readGauges: ReadGauges): Promise<readonly GaugeReading[]> {
  const { promise, resolve } = Promise.withResolvers<readonly GaugeReading[]>()
  const timer = setTimeout(resolve, gaugesTimeoutMs, [])
  readGauges().then(resolve, () => resolve([]))
  const readings = await promise
  clearTimeout(timer)
  return readings
}

function printGauges(readings: readonly GaugeReading[]): string {
  const lines: string[] = []
  const described = new Set<string>()
  for (const { name, help, value, labels = {} } of readings) {
    if (!described.has(name)) lines.push(`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} gauge`)
    described.add(name)
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`)
    lines.push(`${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`)
  }
  return lines.map((line) => `${line}\n`).join('')
}
