/** A mutex by key: the runs of one key are serial, in the order of their calls, and different keys run concurrently. */
export type KeyedMutex = {
  run<T>(key: string, work: () => Promise<T>): Promise<T>
  /**
   * Returns how many runs of the key wait or are under way. Callers bound this number; a key without runs takes no
   * memory.
   */
  pending(key: string): number
  /** Resolves once every run that was requested before this call has ended. */
  drained(): Promise<void>
}

export function createKeyedMutex(): KeyedMutex {
  const queues = new Map<string, { last: Promise<void> | undefined; pending: number }>()
  return {
    run(key, work) {
      const queue = queues.get(key) ?? { last: undefined, pending: 0 }
      queues.set(key, queue)
      queue.pending += 1
      const done = queue.last ? queue.last.then(work) : Promise.try(work)
      const release = () => {
        queue.pending -= 1
        if (queue.pending === 0) queues.delete(key)
      }
      queue.last = done.then(release, release)
      return done
    },
    pending: (key) => queues.get(key)?.pending ?? 0,
    async drained() {
      await Promise.all([...queues.values()].map(({ last }) => last))
    },
  }
}
