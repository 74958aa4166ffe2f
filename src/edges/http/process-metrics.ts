import { readdir, readFile } from 'node:fs/promises'
import { constants, monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getHeapSpaceStatistics } from 'node:v8'
import { counter, createHistogram, gauge, type Metric, type ReadMetrics } from '#kernel/metrics.ts'

/** This module measures the process itself, under the names that Prometheus clients for Node have in common. */

const gcKinds: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MINOR_MARK_SWEEP]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
}

type GcEntry = PerformanceEntry & { detail: { kind: number } }

/** Event-loop delay and garbage collection are counted from the first scrape on. */
export function processMetrics(): ReadMetrics {
  let loop: ReadMetrics | undefined
  let collections: ReadMetrics | undefined
  return async () => {
    loop ??= loopDelay()
    collections ??= garbageCollections()
    const parts = await Promise.all([loop(), collections(), memory(), descriptors()])
    return [...processor(), ...parts.flat(), ...runtime()]
  }
}

function loopDelay(): ReadMetrics {
  const delays = monitorEventLoopDelay()
  delays.enable()
  const seconds = (name: string, help: string, ns: number) =>
    gauge(`nodejs_eventloop_lag_${name}`, help, ns / 1e9)
  return async () => {
    const startMs = performance.now()
    await nextTurn()
    const now = seconds('seconds', 'Delay of one turn of the event loop', (performance.now() - startMs) * 1e6)
    // A histogram without a sample returns NaN, or its largest number.
    if (delays.count === 0) return [now]
    const since = 'of the event-loop delay since the scrape before'
    const measured = [
      seconds('min_seconds', `Minimum ${since}`, delays.min),
      seconds('max_seconds', `Maximum ${since}`, delays.max),
      seconds('mean_seconds', `Mean ${since}`, delays.mean),
      seconds('stddev_seconds', `Standard deviation ${since}`, delays.stddev),
      ...[50, 90, 99].map((p) => seconds(`p${p}_seconds`, `Percentile ${p} ${since}`, delays.percentile(p))),
    ]
    delays.reset()
    return [now, ...measured]
  }
}

function garbageCollections(): ReadMetrics {
  const seconds = createHistogram(
    'nodejs_gc_duration_seconds',
    'Duration of garbage collections by kind',
    [0.001, 0.01, 0.1, 1, 2, 5],
  )
  const observer = new PerformanceObserver((list) => {
    for (const { detail, duration } of list.getEntries() as GcEntry[])
      seconds.series({ kind: gcKinds[detail.kind] ?? 'other' })(duration / 1_000)
  })
  observer.observe({ entryTypes: ['gc'] })
  return () => [seconds.read()]
}

function processor(): Metric[] {
  const { user, system } = process.cpuUsage()
  return [
    counter('process_cpu_user_seconds_total', 'Processor time of the program', user / 1e6),
    counter('process_cpu_system_seconds_total', 'Processor time of the kernel for it', system / 1e6),
    counter('process_cpu_seconds_total', 'Processor time in all', (user + system) / 1e6),
    gauge('process_start_time_seconds', 'Start, in seconds since 1970', performance.timeOrigin / 1_000),
  ]
}

async function memory(): Promise<Metric[]> {
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
  const spaces = getHeapSpaceStatistics()
  const ofSpaces = (name: 'used' | 'available' | 'total', help: string) =>
    gauge(
      `nodejs_heap_space_size_${name}_bytes`,
      help,
      spaces.map((space) => ({
        labels: { space: space.space_name.replace(/_space$/, '') },
        value: name === 'total' ? space.space_size : space[`space_${name}_size`],
      })),
    )
  const status = await fromProc('status')
  const ofStatus = (name: string, help: string, field: string) => {
    const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]
    return kilobytes === undefined ? [] : [gauge(name, help, Number(kilobytes) * 1_024)]
  }
  return [
    gauge('process_resident_memory_bytes', 'Resident memory', rss),
    ...ofStatus('process_virtual_memory_bytes', 'Virtual memory', 'VmSize'),
    ...ofStatus('process_heap_bytes', 'Data segment', 'VmData'),
    gauge('nodejs_heap_size_total_bytes', 'Heap that V8 has reserved', heapTotal),
    gauge('nodejs_heap_size_used_bytes', 'Heap in use', heapUsed),
    gauge('nodejs_external_memory_bytes', 'Memory outside the heap that its objects hold', external),
    ofSpaces('total', 'Size of a space of the heap'),
    ofSpaces('used', 'Use of a space of the heap'),
    ofSpaces('available', 'Free part of a space of the heap'),
  ]
}

async function descriptors(): Promise<Metric[]> {
  const open = await readdir('/proc/self/fd').catch(() => [])
  const limit = /^Max open files\s+(\d+)/m.exec(await fromProc('limits'))?.[1]
  return [
    // One of the open descriptors belongs to the folder /proc/self/fd, which is being read.
    ...(open.length > 0 ? [gauge('process_open_fds', 'Open file descriptors', open.length - 1)] : []),
    ...(limit ? [gauge('process_max_fds', 'Most file descriptors that may be open', Number(limit))] : []),
  ]
}

function runtime(): Metric[] {
  const resources = Map.groupBy(process.getActiveResourcesInfo(), (type) => type)
  const [major = '', minor = '', patch = ''] = process.versions.node.split('.')
  return [
    gauge(
      'nodejs_active_resources',
      'Handles, requests and timers that keep the event loop running, by type',
      [...resources].map(([type, { length }]) => ({ labels: { type }, value: length })),
    ),
    gauge('nodejs_version_info', 'The version of Node; always 1', [
      { labels: { version: process.version, major, minor, patch }, value: 1 },
    ]),
  ]
}

const fromProc = (name: string): Promise<string> => readFile(`/proc/self/${name}`, 'utf8').catch(() => '')
