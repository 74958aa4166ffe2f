import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import type { WalletReading } from './wallet-reading.ts'

/** Each reading of a wallet is fresh for a moment, and a fallback for when its chain does not answer. */

export type CachedReading = { reading: WalletReading; at: Date; error: string | null }

type Options = { freshMs: number; entriesMax: number; now: () => Date; nowMs: () => number }
type CacheRequest = { force: boolean; read: () => Promise<WalletReading> }

export function createHoldingsCache({ freshMs, entriesMax, now, nowMs }: Options) {
  const readings = createTtlCache<CachedReading>({ ttlMs: freshMs, entriesMax, nowMs })
  return {
    async get(key: string, { force, read }: CacheRequest): Promise<CachedReading | { error: string }> {
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
