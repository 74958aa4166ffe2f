import { LRUCache } from 'lru-cache'
import { Fault } from '#kernel/contract/fault.ts'

type FairQueueOptions = {
  /** Jobs that run at once. */
  runsMax: number
  /** Jobs that wait; beyond it one of the key with most of them is rejected, or one of a key that was served later. */
  waitingMax: number
  /** Jobs of one key that wait: less than all, so that no key fills the places of the others. */
  waitingOfKeyMax: number
}

/**
 * Runs jobs, a limited number at once. The key that was served longest ago comes next, and before all of them one that was
 * never served: keys with many jobs, and many keys that come again and again, hardly delay one that comes rarely.
 */
export type FairQueue = {
  /** `signal`: while it waits, the job gives up its place where this aborts. */
  run<T>(key: string, job: () => Promise<T>, signal?: AbortSignal): Promise<T>
}
type Waiter = { start(): void; reject(reason: unknown): void }
/** `rank`: the number of the job that the key was served with; the least one comes next. */
type Line = { waiters: Waiter[]; rank: number }

/** A key that was never served ranks as one that was served so many jobs ago, so that new ones do not go first for ever. */
const rememberedJobs = 1_000
const keysMax = 10_000

const overloaded = () => new Fault('overloaded', 'Too many jobs are waiting')

export function createFairQueue({ runsMax, waitingMax, waitingOfKeyMax }: FairQueueOptions): FairQueue {
  const waiting = new Map<string, Line>()
  const served = new LRUCache<string, number>({ max: keysMax })
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
   * The last job of the longest line gives way where that line stays the longer one: two lines never alternate. Among
   * lines of one length, the one that was served last gives way to a key that has none.
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
      // A started job takes over the run of the one that ended.
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
