import type { Tx } from './task.ts'

export const scopes = ['read', 'chat', 'trade', 'earn', 'withdraw', 'manage'] as const
export type Scope = (typeof scopes)[number]

/** Who calls, as the door established it. It never comes from the input. */
export type Caller = {
  userId: string
  agentId: string
  scheme: 'keypair' | 'oauth'
  scopes: ReadonlySet<Scope>
}

/** What a function may know of the request beside its input. */
export type RequestFacts = {
  id: string
  address: string
  signal: AbortSignal
  /** For an `act` of a known caller: the transaction that also stores the idempotency key and the answer. */
  tx?: Tx
}
