type BatchLoaderOptions<K, V> = {
  /** A key that is absent from the result resolves to undefined. */
  load(keys: readonly K[]): Promise<ReadonlyMap<K, V>>
  /** Concurrent loads. */
  loadsMax: number
  keysMax: number
}
type PendingLoad<V> = PromiseWithResolvers<V | undefined>

/** Batches the keys requested while earlier loads run, so that a long queue costs few loads. */
export function createBatchLoader<K, V>({ load, loadsMax, keysMax }: BatchLoaderOptions<K, V>) {
  const pending = new Map<K, PendingLoad<V>>()
  let loads = 0

  const next = (): void => {
    if (loads >= loadsMax || pending.size === 0) return
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
        next()
      })
  }

  return (key: K): Promise<V | undefined> => {
    const known = pending.get(key)
    if (known) return known.promise
    const asked: PendingLoad<V> = Promise.withResolvers()
    pending.set(key, asked)
    next()
    return asked.promise
  }
}
