import { createTtlCache } from '#kernel/async/ttl-cache.ts'

/** Each reading of a wallet is fresh for a moment, and a fallback for when its chain or venue does not answer. */

export type CachedReading<Reading> = { reading: Reading; at: Date; error: string | null }

type Options = { freshMs: number; entriesMax: number; now: () => Date; nowMs: () => number }
type CacheRequest<Reading> = { force: boolean; read: () => Promise<Reading> }

export function createHoldingsCache<Reading>({ freshMs, entriesMax, now, nowMs }: Options) {
  const readings = createTtlCache<CachedReading<Reading>>({ ttlMs: freshMs, entriesMax, nowMs })
  return {
    async get(
      key: string,
      { force, read }: CacheRequest<Reading>,
    ): Promise<CachedReading<Reading> | { error: string }> {
      const load = async () => ({ reading: await read(), at: now(), error: null })
      try {
        return await readings.get(key, load, { force })
      } catch (error) {
        const message = error instanceof Error ? error.message : 'The chain did not answer'
        return { ...readings.last(key), error: message }
      }
    },
    invalidate: readings.invalidate,
  }
}
