import { Fault } from './fault.ts'

type FairQueueOptions = {
  /** Jobs that run at once. */
  runsMax: number
  /** Jobs that wait; beyond it one of the key with most of them is rejected. */
  waitingMax: number
  /** Jobs of one key that wait: less than all, so that no key fills the places of the others. */
  waitingOfKeyMax: number
}

/** Runs jobs, a limited number at once. The keys take turns, so that one with many jobs delays others by few. */
export type FairQueue = {
  /** `signal`: while it waits, the job gives up its place where this aborts. */
  run<T>(key: string, job: () => Promise<T>, signal?: AbortSignal): Promise<T>
}
type Waiter = { start(): void; reject(reason: unknown): void }

const overloaded = () => new Fault('overloaded', 'Too many jobs are waiting')

export function createFairQueue({ runsMax, waitingMax, waitingOfKeyMax }: FairQueueOptions): FairQueue {
  // The first key is the next one that may start a job.
  const waiting = new Map<string, Waiter[]>()
  let runs = 0
  let count = 0

  const startNext = (): void => {
    const next = waiting.entries().next()
    if (next.done) return
    const [key, waiters] = next.value
    const waiter = waiters.shift()
    waiting.delete(key)
    if (waiters.length > 0) waiting.set(key, waiters)
    count -= 1
    waiter?.start()
  }

  const leave = (key: string, waiter: Waiter): void => {
    const waiters = waiting.get(key) ?? []
    const at = waiters.indexOf(waiter)
    if (at < 0) return
    waiters.splice(at, 1)
    if (waiters.length === 0) waiting.delete(key)
    count -= 1
  }

  /** The last job of the longest line gives way where that line stays the longer one: two lines never alternate. */
  const giveWay = (waitingOfKey: number): void => {
    let longest: [string, Waiter[]] | undefined
    for (const line of waiting) if (line[1].length > (longest?.[1].length ?? waitingOfKey + 1)) longest = line
    const last = longest?.[1].at(-1)
    if (!longest || !last) throw overloaded()
    leave(longest[0], last)
    last.reject(overloaded())
  }

  const turn = async (key: string, signal: AbortSignal | undefined): Promise<void> => {
    const waitingOfKey = waiting.get(key)?.length ?? 0
    if (waitingOfKey >= waitingOfKeyMax) throw overloaded()
    if (count >= waitingMax) giveWay(waitingOfKey)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { start: resolve, reject }
    const waiters = waiting.get(key)
    if (waiters) waiters.push(waiter)
    else waiting.set(key, [waiter])
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
      if (runs < runsMax) runs += 1
      else await turn(key, signal)
      try {
        return await job()
      } finally {
        if (count > 0) startNext()
        else runs -= 1
      }
    },
  }
}
