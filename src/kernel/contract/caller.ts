import type { Principal } from '#kernel/task/action.ts'
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
  /** Set if a chat makes the call by itself, before its user has seen it, or if a run of a schedule does. */
  via?: 'chat' | ScheduleRun
  /** Set if an operator confirmed the act in place of the person. */
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
  /** A person has approved values of up to this for each call; null: none. */
  approvedMicros: bigint | null
  /** The person to whom the agent was linked when the schedule was activated. */
  personId?: string
  /** Set if the chat of the run makes the call by itself. */
  isChat?: true
  /** Set for a call that may reduce what the schedule has opened, and nothing else. */
  reducesOwn?: true
}

/** A server of the operator. `accountId` is the account that pays for its calls; if null, each call names a user. */
export type Backend = { id: string; name: string; accountId: string | null }

/** These clients of the authorization server are pages of the gateway itself: the person does what they do. */
export const pagesClientId = 'portico-pages'
export const approvalsClientId = 'portico-approvals'
export const ownClientIds: readonly string[] = [pagesClientId, approvalsClientId]

export const isOwnClient = (clientId: string): boolean => ownClientIds.includes(clientId)

/** Returns the connected app that makes the call, or null for a key pair and for the gateway's pages. */
export const appOf = ({ person }: Pick<Caller, 'person'>): string | null =>
  person && !isOwnClient(person.clientId) ? person.clientId : null

/** Returns who made a change, as its event says. */
export const actorOf = ({ agentId, confirmedBy }: Caller): string => confirmedBy ?? agentId

export type Asker = Pick<Caller, 'userId' | 'agentId'> & {
  principal: Principal
  clientId?: string
  /** The execution id of the requested task; if absent, it is the id of the task. */
  executionId?: string
  run?: ScheduleRun
}

export type TrialAsker = Pick<Asker, 'userId'> & { executionId?: string | undefined }

export type ActScope = Required<Pick<RequestFacts, 'tx' | 'afterCommit'>>

export const actOf = ({ tx, afterCommit }: RequestFacts): ActScope => ({ tx: tx!, afterCommit: afterCommit! })

/** When a person signed in to a page of the gateway (null in an app's token), and how old a fresh sign-in may be. */
export type SignIn = { at: Date | null; ageMaxSeconds: number }

export type RequestFacts = {
  id: string
  address: string
  signal: AbortSignal
  /** Set for an `act` with a caller: the transaction that also stores the idempotency key and the reply. */
  tx?: Tx
  /** Set for an `act` with derived replies whose change was committed earlier: only the reply is computed. */
  isReplay?: true
  /** The execution id of whatever an `act` arms under an idempotency key. */
  executionId?: string
  /** The facts that a prepared `act` read before its transaction. */
  prepared?: unknown
  /** Runs a callback once `tx` has committed, and never after a rollback. It is set together with `tx`. */
  afterCommit?: (run: () => void) => void
}
