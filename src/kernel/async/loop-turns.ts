import { createFairQueue } from './fair-queue.ts'

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Each call resolves in a turn of the event loop of its own. Work of a few milliseconds that follows it holds others up for
 * that time alone, however many callers there are at once; the key that was served longest ago comes next.
 */
export function createLoopTurns(): (key?: string) => Promise<void> {
  const unbounded = Number.POSITIVE_INFINITY
  const queue = createFairQueue({ runsMax: 1, waitingMax: unbounded, waitingOfKeyMax: unbounded })
  return (key = '') => queue.run(key, nextTurn)
}
