import { createFairQueue } from './fair-queue.ts'

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Each call resolves in a separate turn of the event loop. If each caller then works for a few milliseconds, other work
 * waits for that long at most, however many callers there are. The key that was served longest ago comes next.
 */
export function createLoopTurns(): (key?: string) => Promise<void> {
  const unbounded = Number.POSITIVE_INFINITY
  const queue = createFairQueue({ runsMax: 1, waitingMax: unbounded, waitingOfKeyMax: unbounded })
  return (key = '') => queue.run(key, nextTurn)
}
