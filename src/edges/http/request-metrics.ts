import { createCounter, createHistogram, gauge, type Metric, type Observe } from '#kernel/metrics.ts'

/**
 * Durations have one histogram per mode, because their ranges differ: a plain request is short, a wait lasts as long as
 * its task, and a stream as long as its client stays.
 */
export type RequestMode = 'plain' | 'wait' | 'stream'

const modes: readonly RequestMode[] = ['plain', 'wait', 'stream']
const classesMax = 10

const plainBounds = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const waitBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 90]
const streamBounds = [1, 10, 60, 300, 1_800, 3_600, 14_400]

export function httpMetrics() {
  const durations = {
    plain: createHistogram(
      'portico_http_request_duration_seconds',
      'Time from the request line to the end of the answer, without waits for tasks and without event streams',
      plainBounds,
    ),
    wait: createHistogram(
      'portico_http_wait_duration_seconds',
      'Duration of requests that wait for the end of a task (wait=true)',
      waitBounds,
    ),
    stream: createHistogram(
      'portico_http_stream_duration_seconds',
      'Duration of event streams that have ended',
      streamBounds,
    ),
  }
  const faults = createCounter('portico_http_faults_total', 'Error answers by code of the error catalogue')
  /** Series are found by operation, then by mode and status class, so that the hot path does not hash labels. */
  const series = new Map<string, (Observe | undefined)[]>()
  const seriesOf = (mode: RequestMode, operation: string, status: number): Observe => {
    const known = series.get(operation) ?? []
    if (known.length === 0) series.set(operation, known)
    const statusClass = Math.floor(status / 100)
    const index = modes.indexOf(mode) * classesMax + statusClass
    const observe = known[index] ?? durations[mode].series({ operation, status_class: `${statusClass}xx` })
    known[index] = observe
    return observe
  }
  let inFlight = 0
  let streams = 0

  return {
    started(): void {
      inFlight += 1
    },
    ended(mode: RequestMode, operation: string, status: number, ms: number): void {
      inFlight -= 1
      seriesOf(mode, operation, status)(ms / 1_000)
    },
    faulted(code: string): void {
      faults.add({ code })
    },
    streamOpened(): void {
      streams += 1
    },
    streamClosed(): void {
      streams -= 1
    },
    read: (): Metric[] => [
      durations.plain.read(),
      durations.wait.read(),
      durations.stream.read(),
      faults.read(),
      gauge(
        'portico_http_requests_in_flight',
        'Requests being answered, waits and streams included',
        inFlight,
      ),
      gauge('portico_event_streams_open', 'Open event streams', streams),
    ],
  }
}
export type HttpMetrics = ReturnType<typeof httpMetrics>
