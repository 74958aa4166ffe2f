import { LRUCache } from 'lru-cache'
import type { Reading } from './holdings-reading.ts'

/** The last reading of each wallet on each chain: fresh for a moment, and something to show when a chain is silent. */

export type Known = { reading: Reading; at: Date; error: string | null }
type Entry = { known?: Known; freshUntilMs: number; generation: number; asking?: Promise<Known> }

type Options = { freshMs: number; entriesMost: number; now: () => Date }
type Ask = { force: boolean; read: () => Promise<Reading> }

export function holdingsCache({ freshMs, entriesMost, now }: Options) {
  const entries = new LRUCache<string, Entry>({ max: entriesMost })

  const entryOf = (key: string): Entry => {
    const known = entries.get(key)
    if (known) return known
    const made: Entry = { freshUntilMs: 0, generation: 0 }
    entries.set(key, made)
    return made
  }

  async function ask(entry: Entry, read: Ask['read']): Promise<Known> {
    const { generation } = entry
    const reading = await read()
    const known: Known = { reading, at: now(), error: null }
    entry.known = known
    // A receipt that came in meanwhile makes this reading old before it is stored.
    if (entry.generation === generation) entry.freshUntilMs = performance.now() + freshMs
    return known
  }

  return {
    /** Readers of one moment share one reading; a forced one is always new. */
    async get(key: string, { force, read }: Ask): Promise<Known | { error: string }> {
      const entry = entryOf(key)
      if (!force && entry.known && performance.now() < entry.freshUntilMs) return entry.known
      if (force || !entry.asking) {
        const asking = ask(entry, read).finally(() => {
          if (entry.asking === asking) delete entry.asking
        })
        entry.asking = asking
      }
      return entry.asking!.catch((error: unknown) => {
        const said = error instanceof Error ? error.message : 'The chain did not answer'
        return entry.known ? { ...entry.known, error: said } : { error: said }
      })
    },
    invalidate(key: string): void {
      const entry = entries.get(key)
      if (!entry) return
      entry.generation += 1
      entry.freshUntilMs = 0
      delete entry.asking
    },
  }
}
export type HoldingsCache = ReturnType<typeof holdingsCache>
