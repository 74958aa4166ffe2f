import type { Clock } from '#kernel/clock.ts'
import type { Agent } from '#kernel/money/venue-actions.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { AgentCache } from './agent-key-cache.ts'
import { addAgent, approveAgent, retireAgent, rolesOf, type SealedAgent } from './agent-key-store.ts'
import type { Keystore } from './keystore.ts'

/** The keys that a venue lets trade for users' accounts. */
export type TradingKeys = {
  of(userId: string): Promise<{ current: Agent | undefined; waiting: Agent | undefined }>
  prepare(userId: string): Promise<SealedAgent>
  add(tx: Tx, sealed: SealedAgent): Promise<void>
  approved(tx: Tx, userId: string, fact: { address: string; expiresAt: Date; now: Date }): Promise<void>
  retired(userId: string, address: string): Promise<void>
}

type TradingKeyDeps = {
  db: Queryable
  clock: Clock
  keystore: Pick<Keystore, 'prepareAgent'>
  cache: AgentCache
  venue: string
}

export function createTradingKeys({ db, clock, keystore, cache, venue }: TradingKeyDeps): TradingKeys {
  const markChanging = (userId: string) => {
    const owner = { userId, venue }
    cache.invalidate(owner)
    return owner
  }
  return {
    of: async (userId) => rolesOf(await cache.read(db, { userId, venue })),
    prepare: (userId) => keystore.prepareAgent(userId, venue),
    add: addAgent,
    approved: (tx, userId, fact) => approveAgent(tx, markChanging(userId), fact),
    retired: (userId, address) => retireAgent(db, markChanging(userId), { address, now: clock.now() }),
  }
}
