import { LRUCache } from 'lru-cache'
import type { Queryable } from '#store/query.ts'
import type { AgentWalletRow } from '#store/tables/venue.ts'
import { livingAgents } from './agents.ts'

type Whose = { userId: string; venue: string }
type Read = (on: Queryable, whose: Whose) => Promise<AgentWalletRow[]>

/**
 * The living agents of users as this instance has just read them: a request that has asked which key trades signs with
 * that key, and does not ask again.
 */
export type AgentBook = {
  /** Asks the database. */
  read: Read
  /** What was read a moment ago, or else is read now. */
  recent: Read
  /** Something of them is being written: for a moment nothing is remembered. */
  changing(whose: Whose): void
}

/** A key that was replaced signs no longer than this after. */
export const momentMs = 1_000

export function agentBook(ttl = momentMs): AgentBook {
  const seen = new LRUCache<string, AgentWalletRow[] | 'changing'>({ max: 10_000, ttl })
  const nameOf = ({ userId, venue }: Whose) => `${userId} ${venue}`
  const read: Read = async (on, whose) => {
    const rows = await livingAgents(on, whose)
    const name = nameOf(whose)
    if (seen.get(name) !== 'changing') seen.set(name, rows)
    return rows
  }
  return {
    read,
    async recent(on, whose) {
      const known = seen.get(nameOf(whose))
      return known && known !== 'changing' ? known : read(on, whose)
    },
    changing: (whose) => void seen.set(nameOf(whose), 'changing'),
  }
}
