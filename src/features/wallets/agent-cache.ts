import { LRUCache } from 'lru-cache'
import type { Queryable } from '#store/query.ts'
import type { AgentWalletRow } from '#store/tables/venue.ts'
import { activeAgents } from './agents.ts'

type AgentOwner = { userId: string; venue: string }
type Read = (db: Queryable, owner: AgentOwner) => Promise<AgentWalletRow[]>

/**
 * The living agents of users as this instance has just read them: a request that has asked which key trades signs with
 * that key, and does not ask again.
 */
export type AgentCache = {
  /** Asks the database. */
  read: Read
  /** What was read a moment ago, or else is read now. */
  cached: Read
  /** Something of them is being written: for a moment nothing is remembered. */
  invalidate(owner: AgentOwner): void
}

/** A key that was replaced signs no longer than this after. */
export const agentCacheMs = 1_000

export function agentCache(ttl = agentCacheMs): AgentCache {
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
