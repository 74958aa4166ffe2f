import { LRUCache } from 'lru-cache'
import type { WalletReading } from './wallet-reading.ts'

/** The last reading of each wallet per chain: fresh for a moment, and a fallback where the chain does not answer. */

export type CachedReading = { reading: WalletReading; at: Date; error: string | null }
type Entry = {
  known?: CachedReading
  freshUntilMs: number
  generation: number
  pending?: Promise<CachedReading>
}

type Options = { freshMs: number; entriesMax: number; now: () => Date }
type CacheRequest = { force: boolean; read: () => Promise<WalletReading> }

export function holdingsCache({ freshMs, entriesMax, now }: Options) {
  const entries = new LRUCache<string, Entry>({ max: entriesMax })

  const entryOf = (key: string): Entry => {
    const known = entries.get(key)
    if (known) return known
    const made: Entry = { freshUntilMs: 0, generation: 0 }
    entries.set(key, made)
    return made
  }

  async function refresh(entry: Entry, read: CacheRequest['read']): Promise<CachedReading> {
    const { generation } = entry
    const reading = await read()
    const known: CachedReading = { reading, at: now(), error: null }
    entry.known = known
    // A receipt that arrived during the read makes this reading stale at once.
    if (entry.generation === generation) entry.freshUntilMs = performance.now() + freshMs
    return known
  }

  return {
    /** Concurrent callers share one read; a forced one always reads again. */
    async get(key: string, { force, read }: CacheRequest): Promise<CachedReading | { error: string }> {
      const entry = entryOf(key)
      if (!force && entry.known && performance.now() < entry.freshUntilMs) return entry.known
      if (force || !entry.pending) {
        const pending = refresh(entry, read).finally(() => {
          if (entry.pending === pending) delete entry.pending
        })
        entry.pending = pending
      }
      return entry.pending!.catch((error: unknown) => {
        const message = error instanceof Error ? error.message : 'The chain did not answer'
        return entry.known ? { ...entry.known, error: message } : { error: message }
      })
    },
    invalidate(key: string): void {
      const entry = entries.get(key)
      if (!entry) return
      entry.generation += 1
      entry.freshUntilMs = 0
      delete entry.pending
    },
  }
}
export type HoldingsCache = ReturnType<typeof holdingsCache>
