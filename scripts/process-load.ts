/**
 * The load that the processes of a run put on the machine: threads that run and threads that wait for a processor. Only
 * Linux reports it; elsewhere nothing is measured.
 */
import { readdirSync, readFileSync } from 'node:fs'

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

/** The parent of each process. */
const readParents = (): Map<number, number> => {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (pid > 0) parents.set(pid, fieldsOf(readText(`/proc/${pid}/stat`))[1] ?? 0)
  }
  return parents
}

const threadsOf = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** The time in which the threads of a process ran or waited for a processor. */
const readySecondsOf = (pid: number): number => {
  let ns = 0
  for (const thread of threadsOf(pid)) {
    const [ran = 0, waited = 0] = readText(`/proc/${pid}/task/${thread}/schedstat`).split(' ').map(Number)
    ns += ran + waited
  }
  return ns / 1e9
}

/** A group is a process and all that it has started, also what outlives a process between the two. */
export function createLoadMeter() {
  // The database belongs to no group, but to this process.
  const load = new Map<number, number>([[process.pid, 0]])
  const seen = new Map<number, { leader: number; readySeconds: number }>()
  let sampledAt = performance.now()

  const leaderOf = (pid: number, parents: Map<number, number>): number | undefined => {
    for (let each: number | undefined = pid; each; each = parents.get(each)) if (load.has(each)) return each
    return seen.get(pid)?.leader
  }

  const sample = () => {
    const now = performance.now()
    const parents = readParents()
    const ready = new Map<number, number>()
    for (const pid of parents.keys()) {
      const leader = leaderOf(pid, parents)
      if (leader === undefined) continue
      const readySeconds = readySecondsOf(pid)
      // Threads that have ended take their time with them.
      const more = Math.max(0, readySeconds - (seen.get(pid)?.readySeconds ?? 0))
      ready.set(leader, (ready.get(leader) ?? 0) + more)
      seen.set(pid, { leader, readySeconds })
    }
    for (const pid of seen.keys()) if (!parents.has(pid)) seen.delete(pid)
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
    /** Threads that run or wait for a processor, on average. */
    total: () => [...load.values()].reduce((sum, each) => sum + each, 0),
  }
}
export type LoadMeter = ReturnType<typeof createLoadMeter>
