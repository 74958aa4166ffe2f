import { Fault } from '#kernel/contract/fault.ts'
import { createLru } from './create-lru.ts'

type FairQueueOptions = {
  runsMax: number
  /**
   * When this many jobs wait, a further job displaces a job of the key with the most waiting jobs, or of a key that was
   * served more recently; otherwise the further job itself is rejected.
   */
  waitingMax: number
  /** At most this many jobs of one key wait: fewer than `waitingMax`, so that no key takes every place. */
  waitingOfKeyMax: number
}

/**
 * Runs a limited number of jobs at once. The key that was served longest ago, or never, comes next, so that
 * neither a key with many jobs nor many keys that keep coming back delay a rare key by much.
 */
export type FairQueue = {
  /** Runs a job. A job that still waits gives up its place when `signal` aborts. */
  run<T>(key: string, job: () => Promise<T>, signal?: AbortSignal): Promise<T>
}
type Waiter = { start(): void; reject(reason: unknown): void }
/** `rank` is the number of the job with which the key was last served; the lowest rank comes next. */
type Line = { waiters: Waiter[]; rank: number }

/** A key that was never served ranks like one served this many jobs ago, so that new keys do not go first forever. */
const rememberedJobs = 1_000
const keysMax = 10_000

const overloaded = () => new Fault('overloaded', 'Too many jobs are waiting')

export function createFairQueue({ runsMax, waitingMax, waitingOfKeyMax }: FairQueueOptions): FairQueue {
  const waiting = new Map<string, Line>()
  const served = createLru<string, number>(keysMax)
  let jobs = 0
  let runs = 0
  let count = 0

  const rankOf = (key: string): number => Math.max(served.get(key) ?? 0, jobs - rememberedJobs)
  const serve = (key: string): void => {
    jobs += 1
    served.set(key, jobs)
  }

  const startNext = (): void => {
    let next: [string, Line] | undefined
    for (const entry of waiting)
      if (entry[1].rank < (next?.[1].rank ?? Number.POSITIVE_INFINITY)) next = entry
    if (!next) return
    const [key, { waiters }] = next
    const waiter = waiters.shift()
    serve(key)
    waiting.delete(key)
    if (waiters.length > 0) waiting.set(key, { waiters, rank: rankOf(key) })
    count -= 1
    waiter?.start()
  }

  const leave = (key: string, waiter: Waiter): void => {
    const waiters = waiting.get(key)?.waiters ?? []
    const at = waiters.indexOf(waiter)
    if (at < 0) return
    waiters.splice(at, 1)
    if (waiters.length === 0) waiting.delete(key)
    count -= 1
  }

  /**
   * Makes room for a job of `key`. Rejects the last job of the key with the most waiting jobs, if that key then still
   * has at least as many as `key` with its new job, so that two keys never displace each other in turns. Otherwise, a
   * key without waiting jobs displaces the last job of the key that was served most recently.
   */
  const giveWay = (key: string): void => {
    const waitingOfKey = waiting.get(key)?.waiters.length ?? 0
    let longest: [string, Line] | undefined
    let latest: [string, Line] | undefined
    for (const line of waiting) {
      if (line[1].waiters.length > (longest?.[1].waiters.length ?? waitingOfKey + 1)) longest = line
      if (line[1].rank > (latest?.[1].rank ?? rankOf(key))) latest = line
    }
    const chosen = longest ?? (waitingOfKey === 0 ? latest : undefined)
    const last = chosen?.[1].waiters.at(-1)
    if (!chosen || !last) throw overloaded()
    leave(chosen[0], last)
    last.reject(overloaded())
  }

  const turn = async (key: string, signal: AbortSignal | undefined): Promise<void> => {
    if ((waiting.get(key)?.waiters.length ?? 0) >= waitingOfKeyMax) throw overloaded()
    if (count >= waitingMax) giveWay(key)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { start: resolve, reject }
    const line = waiting.get(key)
    if (line) line.waiters.push(waiter)
    else waiting.set(key, { waiters: [waiter], rank: rankOf(key) })
    count += 1
    const abandon = () => {
      leave(key, waiter)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', abandon, { once: true })
    try {
      await promise
    } finally {
      signal?.removeEventListener('abort', abandon)
    }
  }

  return {
    async run(key, job, signal) {
      signal?.throwIfAborted()
      // A job that waited takes over the place of the job that ended, so the number of runs stays the same.
      if (runs < runsMax) {
        runs += 1
        serve(key)
      } else await turn(key, signal)
      try {
        return await job()
      } finally {
        if (count > 0) startNext()
        else runs -= 1
      }
    },
  }
}
