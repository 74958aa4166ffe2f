import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type GaugeReading = { name: string; help: string; value: number; labels?: Record<string, string> }
/** Readings of other parts, asked for at each scrape. */
export type ReadGauges = () => Promise<readonly GaugeReading[]>

const gaugesTimeoutMs = 1_000

export function metrics(readGauges: ReadGauges | undefined) {
  const registry = new Registry()
  // Event-loop delay, memory, processor and garbage collection come with these.
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const requests = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the request line to the end of the answer, by route pattern',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 90],
    registers,
  })
  const inFlight = new Gauge({ name: 'http_requests_in_flight', help: 'Requests being answered', registers })
  const streams = new Gauge({ name: 'sse_streams_open', help: 'Open event streams', registers })

  return {
    started: () => inFlight.inc(),
    ended(method: string, route: string, status: number, ms: number): void {
      inFlight.dec()
      requests.observe({ method, route, status: String(status) }, ms / 1_000)
    },
    streamOpened: () => streams.inc(),
    streamClosed: () => streams.dec(),
    contentType: registry.contentType,
    async text(): Promise<string> {
      const own = await registry.metrics()
      return readGauges ? own + printGauges(await within(readGauges)) : own
    },
  }
}
export type Metrics = ReturnType<typeof metrics>

/** A part that hangs must not keep the numbers of the others from being read. */
async function within(readGauges: ReadGauges): Promise<readonly GaugeReading[]> {
  const { promise, resolve } = Promise.withResolvers<readonly GaugeReading[]>()
  const timer = setTimeout(resolve, gaugesTimeoutMs, [])
  readGauges().then(resolve, () => resolve([]))
  const readings = await promise
  clearTimeout(timer)
  return readings
}

const escaped = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')

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
