const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Each call resolves in a turn of the event loop of its own, in the order of the calls. Work of a few milliseconds that
 * follows it holds others up for that time alone, however many callers there are at once.
 */
export function createLoopTurns(): () => Promise<void> {
  let last = Promise.resolve()
  return () => {
    last = last.then(nextTurn)
    return last
  }
}
