import { Fault } from './fault.ts'

type FairQueueOptions = {
  /** Jobs that run at once. */
  runsMax: number
  /** Jobs that wait; beyond it a job is rejected. */
  waitingMax: number
  /** Jobs of one key that wait: less than all, so that no key fills the places of the others. */
  waitingOfKeyMax: number
}

/** Runs jobs, a limited number at once. The keys take turns, so that one with many jobs delays others by few. */
export type FairQueue = { run<T>(key: string, job: () => Promise<T>): Promise<T> }

export function createFairQueue({ runsMax, waitingMax, waitingOfKeyMax }: FairQueueOptions): FairQueue {
  // The first key is the next one that may start a job.
  const waiting = new Map<string, (() => void)[]>()
  let runs = 0
  let count = 0

  const startNext = (): void => {
    const next = waiting.entries().next()
    if (next.done) return
    const [key, starts] = next.value
    const start = starts.shift()
    waiting.delete(key)
    if (starts.length > 0) waiting.set(key, starts)
    count -= 1
    start?.()
  }

  const turn = (key: string): Promise<void> | undefined => {
    if (runs < runsMax) return undefined
    const waitingOfKey = waiting.get(key)?.length ?? 0
    if (count >= waitingMax || waitingOfKey >= waitingOfKeyMax)
      throw new Fault('overloaded', 'Too many jobs are waiting')
    const { promise, resolve } = Promise.withResolvers<void>()
    const starts = waiting.get(key)
    if (starts) starts.push(resolve)
    else waiting.set(key, [resolve])
    count += 1
    return promise
  }

  return {
    async run(key, job) {
      const turned = turn(key)
      // A started job takes over the run of the one that ended.
      if (turned) await turned
      else runs += 1
      try {
        return await job()
      } finally {
        if (count > 0) startNext()
        else runs -= 1
      }
    },
  }
}
