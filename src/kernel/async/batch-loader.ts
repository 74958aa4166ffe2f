type BatchLoaderOptions<K, V> = {
  /**
   * Loads the values of several keys by one call; a key that is absent from the result gets the value undefined.
   */
  load(keys: readonly K[]): Promise<ReadonlyMap<K, V>>
  loadsMax: number
  keysMax: number
}
type PendingLoad<V> = PromiseWithResolvers<V | undefined>

/**
 * Batches the keys that are requested together or while earlier loads run. Its callers bound how many keys wait.
 */
export function createBatchLoader<K, V>({ load, loadsMax, keysMax }: BatchLoaderOptions<K, V>) {
  const pending = new Map<K, PendingLoad<V>>()
  let loads = 0
  let isScheduled = false

  const startLoads = (): void => {
    isScheduled = false
    while (loads < loadsMax && pending.size > 0) startLoad()
  }
  const startLoad = (): void => {
    const batch = [...pending.entries().take(keysMax)]
    for (const [key] of batch) pending.delete(key)
    loads += 1
    load(batch.map(([key]) => key))
      .then(
        (found) => {
          for (const [key, { resolve }] of batch) resolve(found.get(key))
        },
        (error: unknown) => {
          for (const [, { reject }] of batch) reject(error)
        },
      )
      .finally(() => {
        loads -= 1
        startLoads()
      })
  }

  return (key: K): Promise<V | undefined> => {
    const known = pending.get(key)
    if (known) return known.promise
    const asked: PendingLoad<V> = Promise.withResolvers()
    pending.set(key, asked)
    if (!isScheduled) queueMicrotask(startLoads)
    isScheduled = true
    return asked.promise
  }
}
