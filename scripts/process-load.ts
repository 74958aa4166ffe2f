/**
 * The load that the processes of a run put on the machine: those that run and those that wait for a processor. Only
 * Linux reports it; elsewhere nothing is measured.
 */
import { readdirSync, readFileSync } from 'node:fs'

type Stat = {
  pid: number
  parent: number
  /** Seconds on a processor, with those in which the main thread waited for one. */
  readySeconds: number
}

const ticksPerSecond = 100
/** Longer than the pauses of a test that waits for a start, so that a start does not look like a free processor. */
const smoothingMs = 4_000

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The process has ended meanwhile.
    return ''
  }
}

/** The fields of `stat` after the name, which is in brackets and may contain anything: state, parent, ... */
const fieldsOf = (text: string): number[] =>
  text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)

/** Processor seconds of this process and of all its ended children. */
export function cpuSecondsOfThisProcess(): number | undefined {
  if (process.platform !== 'linux') return undefined
  const ticks = fieldsOf(readText('/proc/self/stat')).slice(11, 15)
  return ticks.reduce((sum, each) => sum + each, 0) / ticksPerSecond
}

const readStats = (): Map<number, Stat> => {
  const stats = new Map<number, Stat>()
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!(pid > 0)) continue
    const fields = fieldsOf(readText(`/proc/${pid}/stat`))
    if (fields.length < 15) continue
    const waitedNs = Number(readText(`/proc/${pid}/schedstat`).split(' ')[1] ?? 0)
    const readySeconds = (fields[11]! + fields[12]!) / ticksPerSecond + waitedNs / 1e9
    stats.set(pid, { pid, parent: fields[1]!, readySeconds })
  }
  return stats
}

/** A group is a process and all that it has started, also what outlives a process between the two. */
export function createLoadMeter() {
  // The database belongs to no group, but to this process.
  const load = new Map<number, number>([[process.pid, 0]])
  const seen = new Map<number, { leader: number; readySeconds: number }>()
  let sampledAt = performance.now()

  const leaderOf = (pid: number, stats: Map<number, Stat>): number | undefined => {
    for (let each: number | undefined = pid; each; each = stats.get(each)?.parent)
      if (load.has(each)) return each
    return seen.get(pid)?.leader
  }

  const sample = () => {
    const now = performance.now()
    const stats = readStats()
    const ready = new Map<number, number>()
    for (const { pid, readySeconds } of stats.values()) {
      const leader = leaderOf(pid, stats)
      if (leader === undefined) continue
      ready.set(leader, (ready.get(leader) ?? 0) + readySeconds - (seen.get(pid)?.readySeconds ?? 0))
      seen.set(pid, { leader, readySeconds })
    }
    for (const pid of seen.keys()) if (!stats.has(pid)) seen.delete(pid)
    const elapsed = now - sampledAt
    const weight = 1 - Math.exp(-elapsed / smoothingMs)
    for (const [leader, before] of load) {
      const share = ((ready.get(leader) ?? 0) * 1_000) / Math.max(elapsed, 1)
      load.set(leader, before + weight * (share - before))
    }
    sampledAt = now
  }

  return {
    isMeasured: process.platform === 'linux',
    sample,
    /** A group begins as busy as one processor: it starts by loading code. */
    add: (leader: number) => void load.set(leader, 1),
    remove: (leader: number) => void load.delete(leader),
    /** Processes that run or wait for a processor, on average. */
    total: () => [...load.values()].reduce((sum, each) => sum + each, 0),
  }
}
export type LoadMeter = ReturnType<typeof createLoadMeter>
