import type { Principal } from '#kernel/task/action.ts'
import type { Tx } from '#kernel/task/task.ts'

export const scopes = ['read', 'chat', 'trade', 'earn', 'withdraw', 'manage', 'propose'] as const
export type Scope = (typeof scopes)[number]

/** The authenticated caller. It never comes from the input. */
export type Caller = {
  userId: string
  agentId: string
  scheme: 'keypair' | 'oauth' | 'backend'
  scopes: ReadonlySet<Scope>
  /** The presented opaque token: its SHA-256 and its expiry. */
  token?: { hash: string; expiresAt: Date }
  /** A chat makes the call by itself: its user has not seen it before. */
  via?: 'chat'
  /** The backend whose key was presented: it has no user of its own. */
  backend?: Backend
  /** The person who signed in with OAuth; `userId` is theirs also before the sign-up. */
  person?: {
    email: string
    grantId: string
    /** The app that the person has connected. */
    clientId: string
    oauthScopes: readonly string[]
    hasSignedUp: boolean
    signIn: SignIn
  }
}

/** A server of the operator's. `accountId`: the account that pays for its calls; null: the user that each call names. */
export type Backend = { id: string; name: string; accountId: string | null }

/** Clients of the authorization server that are pages of the gateway itself: what they do the person has done. */
export const pagesClientId = 'portico-pages'
export const approvalsClientId = 'portico-approvals'
export const ownClientIds: readonly string[] = [pagesClientId, approvalsClientId]

export const isOwnClient = (clientId: string): boolean => ownClientIds.includes(clientId)

/** The app that a person has connected and that makes the call; null for a key pair and for pages of the gateway. */
export const appOf = ({ person }: Pick<Caller, 'person'>): string | null =>
  person && !isOwnClient(person.clientId) ? person.clientId : null

/** Who asks for a task. */
export type Asker = Pick<Caller, 'userId' | 'agentId'> & {
  principal: Principal
  /** The app of a person; absent for a key pair. */
  clientId?: string
  /** The execution id of the task that is asked for; absent where it is the id of the task. */
  executionId?: string
}

/** Who asks for a trial, before a task exists. */
export type TrialAsker = Pick<Asker, 'userId'> & { executionId?: string | undefined }

/** The transaction of an act, and what runs once it has committed. */
export type ActScope = Required<Pick<RequestFacts, 'tx' | 'afterCommit'>>

/** Of an `act` with a caller. */
export const actOf = ({ tx, afterCommit }: RequestFacts): ActScope => ({ tx: tx!, afterCommit: afterCommit! })

/** When a person signed in for a page of the gateway, null in a token of an app; and how old a fresh sign-in is at most. */
export type SignIn = { at: Date | null; ageMaxSeconds: number }

/** Facts of the request besides its input. */
export type RequestFacts = {
  id: string
  address: string
  signal: AbortSignal
  /** For an `act` with a caller: the transaction that also stores the idempotency key and the reply. */
  tx?: Tx
  /** For an `act` with derived replies: the change was committed earlier, so only the reply is computed. */
  isReplay?: true
  /** The execution id of what an `act` under a key of its caller arms. */
  executionId?: string
  /** What a prepared `act` has read before its transaction. */
  prepared?: unknown
  /** Set together with `tx`: runs once that transaction has committed, and never after a rollback. */
  afterCommit?: (run: () => void) => void
}
