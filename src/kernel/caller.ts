import type { Tx } from './task.ts'

export const scopes = ['read', 'chat', 'trade', 'earn', 'withdraw', 'manage'] as const
export type Scope = (typeof scopes)[number]

/** Who calls, as the door established it. It never comes from the input. */
export type Caller = {
  userId: string
  agentId: string
  scheme: 'keypair' | 'oauth'
  scopes: ReadonlySet<Scope>
  /** The opaque token that was presented: its SHA-256, and when it ends. */
  token?: { hash: string; expiresAt: Date }
}

/** What a function may know of the request beside its input. */
export type RequestFacts = {
  id: string
  address: string
  signal: AbortSignal
  /** For an `act` of a known caller: the transaction that also stores the idempotency key and the answer. */
  tx?: Tx
  /** For an `act` whose replies are derived: the change was made before, so only its reply is wanted. */
  isReplay?: true
  /** Beside `tx`: runs once that transaction has committed, and never where it was rolled back. */
  afterCommit?: (run: () => void) => void
}
