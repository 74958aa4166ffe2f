import { LRUCache } from 'lru-cache'
import type { Queryable } from '#store/query.ts'
import type { AgentWalletRow } from '#store/tables/venue.ts'
import { activeAgents } from './agent-key-store.ts'

type AgentOwner = { userId: string; venue: string }
type Read = (db: Queryable, owner: AgentOwner) => Promise<AgentWalletRow[]>

/** Caches the active agents of each user, so that choosing a key and signing with it share one read per request. */
export type AgentCache = {
  read: Read
  /** Returns a recent reading of the active agents, or reads the database. */
  cached: Read
  /**
   * Drops the cached agents of an owner before a write changes them. Nothing is cached for
   * the owner until a read from before the write can no longer be under way.
   */
  invalidate(owner: AgentOwner): void
}

/** The longest time for which a replaced key still signs. */
export const agentCacheMs = 1_000

export function createAgentCache(ttl = agentCacheMs): AgentCache {
  const rowsByOwner = new LRUCache<string, AgentWalletRow[] | 'changing'>({ max: 10_000, ttl })
  const nameOf = ({ userId, venue }: AgentOwner) => `${userId} ${venue}`
  const read: Read = async (db, owner) => {
    const rows = await activeAgents(db, owner)
    const name = nameOf(owner)
    if (rowsByOwner.get(name) !== 'changing') rowsByOwner.set(name, rows)
    return rows
  }
  return {
    read,
    async cached(db, owner) {
      const known = rowsByOwner.get(nameOf(owner))
      return known && known !== 'changing' ? known : read(db, owner)
    },
    invalidate: (owner) => void rowsByOwner.set(nameOf(owner), 'changing'),
  }
}
