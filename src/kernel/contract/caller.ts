import type { Principal } from '#kernel/task/policy-action.ts'
import type { Tx } from '#kernel/task/task.ts'

export const scopes = ['read', 'chat', 'trade', 'earn', 'withdraw', 'manage', 'propose'] as const
export type Scope = (typeof scopes)[number]

/** The authenticated caller, which never comes from the input. */
export type Caller = {
  userId: string
  agentId: string
  scheme: 'keypair' | 'oauth' | 'backend'
  scopes: ReadonlySet<Scope>
  /** The SHA-256 and the expiry of the opaque token that was presented. */
  token?: { hash: string; expiresAt: Date }
  /** The chat, or the run of a schedule, that makes the call by itself before any person has seen the call. */
  via?: 'chat' | ScheduleRun
  /** The operator, if an operator confirmed the act in place of the person. */
  confirmedBy?: 'operator'
  /** The backend whose key was presented. A backend has no user. */
  backend?: Backend
  /** The person who signed in with OAuth. `userId` is the person's even before the sign-up. */
  person?: {
    email: string
    grantId: string
    clientId: string
    oauthScopes: readonly string[]
    hasSignedUp: boolean
    signIn: SignIn
  }
}

/** The run of a schedule that makes a call. It acts for its user, and nobody watches. */
export type ScheduleRun = {
  schedule: string
  /** The task of the run, which is the parent of the tasks that it starts. */
  run: string
  /**
   * The value, in micro-dollars, up to which a person has approved each call of the run; null without an approval.
   */
  approvedMicros: bigint | null
  /** The budget of the schedule, in micro-dollars; absent if the schedule has none. */
  budgetMicros?: bigint
  /** The person to whom the agent was linked when the schedule was activated. */
  personId?: string
  /** When the agent was linked to that person. */
  linkedAt?: string
  /** True if the chat of the run makes the call by itself. */
  isChat?: true
  /** True if the call may reduce what the schedule has opened, and may do nothing else. */
  reducesOwn?: true
}

/** A server of the operator. `accountId` is the account that pays for its calls; if null, each call names a user. */
export type Backend = { id: string; name: string; accountId: string | null }

/**
 * The ids of the OAuth clients that are pages of the gateway itself: a call of such a page is an act of the person.
 */
export const pagesClientId = 'portico-pages'
export const approvalsClientId = 'portico-approvals'
export const ownClientIds: readonly string[] = [pagesClientId, approvalsClientId]

export const isOwnClient = (clientId: string): boolean => ownClientIds.includes(clientId)

/** Returns the connected app that makes the call, or null for a key pair and for the gateway's pages. */
export const appOf = ({ person }: Pick<Caller, 'person'>): string | null =>
  person && !isOwnClient(person.clientId) ? person.clientId : null

/**
 * Returns the actor that the event of a change names: the operator who confirmed the change, or the caller's agent.
 */
export const actorOf = ({ agentId, confirmedBy }: Caller): string => confirmedBy ?? agentId

export type Asker = Pick<Caller, 'userId' | 'agentId'> & {
  principal: Principal
  clientId?: string
  /** The execution id of the requested task; if absent, the id of the task is its execution id. */
  executionId?: string
  run?: ScheduleRun
}

export type TrialAsker = Pick<Asker, 'userId'> & { executionId?: string | undefined }

export type ActScope = Required<Pick<RequestFacts, 'tx' | 'afterCommit'>>

export const toActScope = ({ tx, afterCommit }: RequestFacts): ActScope => ({
  tx: tx!,
  afterCommit: afterCommit!,
})

/** When a person signed in to a page of the gateway (null in an app's token), and how old a fresh sign-in may be. */
export type SignIn = { at: Date | null; ageMaxSeconds: number }

export type RequestFacts = {
  id: string
  address: string
  signal: AbortSignal
  /** The transaction that also stores the idempotency key and the reply; only an `act` with a caller has one. */
  tx?: Tx
  /**
   * True for an `act` with derived replies whose change was committed earlier: only the reply is computed again.
   */
  isReplay?: true
  /** The execution id of the trigger orders that an `act` arms under an idempotency key. */
  executionId?: string
  /** The facts that a prepared `act` read before its transaction. */
  prepared?: unknown
  /** Runs a callback once `tx` has committed, and never after a rollback. It is set together with `tx`. */
  afterCommit?: (run: () => void) => void
}
