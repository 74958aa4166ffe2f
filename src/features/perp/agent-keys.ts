import type { SealedAgent } from '#features/wallets/agents.ts'
import type { Tx } from '#kernel/task.ts'
import type { Agent } from '#kernel/venue.ts'

/** The keys that the venue lets trade for a user's account. */
export type Agents = {
  of(userId: string): Promise<{ current: Agent | undefined; waiting: Agent | undefined }>
  prepare(userId: string): Promise<SealedAgent>
  add(tx: Tx, sealed: SealedAgent): Promise<void>
  approved(tx: Tx, userId: string, fact: { address: string; expiresAt: Date; now: Date }): Promise<void>
  retired(userId: string, address: string): Promise<void>
}

/** A key is replaced this long before it expires. */
export const renewAheadMs = 14 * 86_400_000
