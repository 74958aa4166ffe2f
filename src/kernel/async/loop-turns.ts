const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Each call resolves in a separate turn of the event loop, in the order of the calls. If each caller then works
 * for a few milliseconds, other work waits for that long at most, however many callers there are.
 */
export function createLoopTurns(): () => Promise<void> {
  let last = Promise.resolve()
  return () => {
    last = last.then(nextTurn)
    return last
  }
}
