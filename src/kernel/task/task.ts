import type { Fault } from '#kernel/contract/fault.ts'
import type { Token } from '#kernel/money/chains.ts'
import type { Json, JsonObject } from '#kernel/wire/json.ts'
import type { GasCharge } from './gas-charge.ts'
import type { Draw } from './ledger-draw.ts'
import type { PlannedAction, PolicyGrant } from './policy-action.ts'
import type { LiveState, Outcome } from './task-state.ts'
import type { OrderRoom, TriggerOrder } from './trigger-order.ts'

/** The types in which a feature describes a task to the runner. They are types only: the runner does all writes. */

declare const txBrand: unique symbol
/** An open database transaction, opaque here; `store` writes through it. */
export type Tx = { readonly [txBrand]: 'tx' }

export type AccountRef = { owner: string; asset: string; subAccount: string }
export type LedgerToken = Pick<Token, 'symbol' | 'decimals' | 'address'>
export const systemOwner = '00000000-0000-7000-8000-000000000000'
/** The counterparty of every deposit and payment, and the only account that may be negative. */
export const externalAccount = (asset: string): AccountRef => ({
  owner: systemOwner,
  asset,
  subAccount: 'external',
})

/**
 * `transfer` moves units at once. `hold` reserves units for `credit` until `post` transfers them or `void` releases
 * them. `key` is unique per debit account, so that a repeated move changes nothing.
 */
export type Move =
  | {
      move: 'transfer'
      key: string
      debit: AccountRef
      credit: AccountRef
      amountUnits: bigint
      reason: string
    }
  | {
      move: 'hold'
      key: string
      debit: AccountRef
      credit: AccountRef
      amountUnits: bigint
      reason: string
      token: LedgerToken
    }
  | { move: 'post'; key: string; amountUnits?: bigint }
  | { move: 'void'; key: string }

/**
 * A balance read from a chain or venue. `version` is the account's counter read BEFORE the balance: if a hold
 * was posted or voided in between, the reading is of unknown age and the admission starts again.
 */
export type ReadBalance = { totalUnits: bigint; version: bigint }
export type SeenBalance = ReadBalance & { reread(): Promise<ReadBalance> }

/** A task's spend. The statement that accepts the task counts it against the user's limits, and holds it. */
export type Spend = {
  action: PlannedAction
  /** The account whose `amountUnits` are held until the task ends; `spent` of a step posts them. */
  account?: AccountRef
  amountUnits?: bigint
  token?: LedgerToken
  seen?: SeenBalance
  gas?: GasCharge
}
export const spendKey = (taskId: string): string => `${taskId}:spend`
export type AdmittedSpend = Spend & {
  grant?: PolicyGrant
  check(): Promise<PolicyGrant>
}

export type NonceSequence = { kind: string; chain: string; signer: string }

/** An external side effect. Its bytes and id are stored before they are sent. */
export type NewEffect = {
  kind: string
  externalId: string
  intent: JsonObject
  signed: JsonObject
  policyReceipt: string
  validUntil?: Date
}
/** One signed transaction of an effect; a replacement is a further attempt under the same nonce. */
export type NewTxAttempt = { externalId: string; raw: string; nonce: bigint }
export const effectStatuses = ['prepared', 'sent', 'confirmed', 'rejected', 'dropped', 'unknown'] as const
export type EffectStatus = (typeof effectStatuses)[number]

export type TxAttempt = {
  n: number
  externalId: string
  raw: string
  nonceSequence: NonceSequence
  nonce: bigint
  status: string
  at: Date
}
export type Effect = {
  id: string
  step: string
  kind: string
  externalId: string
  intent: JsonObject
  signed: JsonObject
  status: EffectStatus
  validUntil: Date | null
  at: Date
  txAttempts: TxAttempt[]
  /** True if this instance committed the effect in its previous step, so that no other instance has sent it. */
  neverSent?: true
}
export type EffectUpdate = {
  effectId: string
  status: EffectStatus
  proof?: JsonObject
  attemptExternalId?: string
}

/** An event for the task's owner beside the runner's. `taskId` names its task if no step of that task writes it. */
export type NewEvent = {
  type: string
  taskId?: string
  subject?: { kind: string; id: string }
  data: JsonObject
}

type StepResultBase<Patch> = {
  /** Fields that are merged into the task's data. */
  data?: Patch
  /** The delivered units of the task's spend: they post its hold, and the rest becomes available again. */
  spent?: bigint
  moves?: Move[]
  effects?: EffectUpdate[]
  events?: NewEvent[]
  /** Writes the feature's own tables, in the transaction that commits the step. */
  writes?: (tx: Tx) => Promise<void>
  /** Runs after `writes`, and adds to the result what only the transaction of the step knows. */
  complete?: (tx: Tx) => Promise<StepAddition>
}
export type StepAddition = { data?: JsonObject; events?: NewEvent[]; result?: JsonObject }

/**
 * What a step signs, and when. `build` signs within the fenced transaction of a step, with the nonce under its
 * sequence's row lock; `signOnAccept` and `signInOrder` sign with the acceptance of the task. Nothing is sent
 * before its signature is committed.
 */
export type Intent<Patch = JsonObject, Names extends string = string> = {
  nonceSequence: NonceSequence
  /** The lower bound of the nonce: venues with timestamp nonces reject older ones. */
  minNonce?: bigint
  /** Runs before the nonce is taken. The returned function runs under the sequence's lock, so it should do little. */
  build: (tx: Tx) => Promise<(nonce: bigint) => Promise<SignedEffect>>
  /**
   * Signs the first step of a task that does not exist yet, under a nonce from a sequence that may have gaps. It
   * reads while the nonce is taken, and signs before the acceptance is inserted.
   */
  signOnAccept?: (() => Promise<SignOnAccept>) | undefined
  /**
   * Signs the first step under a nonce from a sequence without gaps, within the transaction that accepts the task.
   */
  signInOrder?: () => Promise<SignInOrder>
  /** The step's result if the signature is refused; without `onRefused` a refusal is a failed attempt. */
  onRefused?: (fault: Fault) => StepResultOf<Patch, Names>
}
export type SignedEffect = { effect: NewEffect; txAttempt: NewTxAttempt }
export type SigningGrant = {
  grant?: PolicyGrant
  check?: () => Promise<PolicyGrant>
  rows?: FeatureRows[]
}
export type SignOnAccept = (nonce: bigint) => Promise<SignedEffect & SigningGrant>
export type SignInOrder = SigningGrant & { sign(nonce: bigint): Promise<SignedEffect> }
/** New rows of a feature's table, inserted with the task. A row that exists already is left as it is. */
export type FeatureRows = { table: string; rows: JsonObject[] }
export type Replacement = {
  effectId: string
  nonceSequence: NonceSequence
  build: (tx: Tx) => Promise<NewTxAttempt>
}

/** A nonce is locked after the accounts of the ledger, so a step that takes one must not move ledger units. */
type NonceResultBase<Patch> = Omit<StepResultBase<Patch>, 'moves' | 'spent'> & {
  moves?: never
  spent?: never
}

/** `Patch` is what the step changes in the data, and `Names` are the steps that may follow. */
export type StepResultOf<Patch, Names extends string = string> =
  | (StepResultBase<Patch> & {
      next: Names
      state?: LiveState
      /** The step's result if `writes` throws a fault; without it a refusal is a failed attempt. */
      onWritesRefused?: (fault: Fault) => StepResultOf<Patch, Names>
    })
  | (NonceResultBase<Patch> & { sign: Intent<Patch, Names>; next: Names; state?: LiveState })
  | (NonceResultBase<Patch> & { replace: Replacement; next: Names; state?: LiveState })
  | (StepResultBase<Patch> & {
      park: { afterMs: number; next: Names }
      state?: LiveState
      outcome?: 'unknown'
    })
  | EndResult<Patch>
type PatchOf<Data> = string extends keyof Data ? Data : Partial<Data>
export type StepResult<Data = JsonObject, Names extends string = string> = StepResultOf<PatchOf<Data>, Names>

export type EndResult<Patch = JsonObject> = StepResultBase<Patch> & StepEnd
export type FailedResult<Patch = JsonObject> = StepResultBase<Patch> & Extract<StepEnd, { error: unknown }>

export type StepEnd =
  | {
      end: 'completed'
      outcome: 'executed' | 'partial'
      /** The result of the task; null only if an operator ended the task, since its figures are unknown then. */
      result: JsonObject | null
    }
  | {
      end: 'failed' | 'cancelled'
      outcome: 'not_executed' | 'partial'
      error: {
        code: string
        message: string
        retryable?: boolean
        upstream?: string
        upstream_code?: string
        details?: JsonObject
      }
      result?: JsonObject
    }

/** The input of a step. `effects` are all effects of the task, with their attempts. */
export type TaskView<Data = JsonObject, Input = JsonObject> = {
  id: string
  /** The id by which chains and venues know the task; its own id if nothing outside this database determines it. */
  executionId: string
  mayBeForgotten?: boolean
  userId: string
  kind: string
  data: Data
  input: Input
  attempt: number
  /** The fencing token of the claim: it changes with each claim and each commit. */
  version: number
  effects: Effect[]
  createdAt: Date
  deadline: Date
  /** `unknown` without an effect means that an earlier execution under this task's execution id is being looked up. */
  outcome?: Outcome | null
}
export type StepContext = {
  now: Date
  /** Aborts if the step took too long, or if another instance owns the task: the result no longer counts. */
  signal: AbortSignal
  /** Aborts when this instance shuts down: a step that only waits returns what it has seen. */
  stopping: AbortSignal
}
export type Step<Data = JsonObject, Names extends string = string, Input = JsonObject> = (
  task: TaskView<Data, Input>,
  context: StepContext,
) => Promise<StepResult<Data, Names>>
/** The steps of a task whose names are `Own`; the steps in `Names` may follow them. */
export type Steps<Data, Own extends string, Names extends string = Own, Input = JsonObject> = {
  [Name in Own]: Step<Data, Names, Input>
}

export type RetryRule = { attemptsMax: number; firstMs: number; maxMs: number }

/** Signs for a task that does not exist yet; returns undefined if the first step of the task has to sign. */
export type SignFirst<Names extends string = string> = (
  task: Pick<TaskView, 'id' | 'executionId' | 'userId'>,
  context: StepContext,
) => Promise<StepResultOf<never, Names> | undefined>

/** The result of `admit`: what the task starts with, committed together with the task itself. */
export type Admission<Data = JsonObject, Names extends string = string> = {
  /** The id of the task, if rows of the feature name it; otherwise the engine makes one. */
  taskId?: string
  data: Data
  first: Names
  deadlineMs?: number
  spend?: AdmittedSpend
  /** Units that no policy counts, such as credits, in place of a spend. */
  draw?: Draw
  rows?: FeatureRows[]
  orders?: OrderRoom
  /**
   * True if the first step signs: `signOnAccept` or `signInOrder` of its intent then signs together with the
   * acceptance, if this instance has capacity. A function signs in place of the step, with what the admission has read.
   */
  signOnAccept?: boolean | SignFirst<Names>
}

/**
 * A kind of task: its steps by name, and the type of the data that its rows hold. An old version stays while
 * rows refer to it. Without type arguments it is a kind as the runner reads it; see `defineTaskKind`.
 */
export type TaskKind<Data = JsonObject, Names extends string = string, Input = JsonObject> = TaskRules & {
  kind: string
  version: number
  priority: TaskPriority
  /** Returns the priority of a task whose input decides it; without this function every task has `priority`. */
  priorityOf?(input: JsonObject): TaskPriority
  steps: Steps<Data, Names, Names, Input>
  /** Returns the spend of a task that a price trigger creates, which has no admission. */
  spendOf?(userId: string, input: JsonObject): AdmittedSpend
  /** Whether each attempt of an order has its own execution id; otherwise all share one, and one attempt executes. */
  hasExecutionPerAttempt?: boolean
  /** Returns the event of an order that fired, expired, or was cancelled because another one fired. */
  orderEvent?(order: TriggerOrder): NewEvent | undefined
}
/**
 * The priority of a task: 0 for exits, 1 for trades, 2 for background work, 3 for long waits for a service, such as
 * chats, which have separate slots, and 4 for those of runs that nobody waits for, which have others again.
 */
export type TaskPriority = 0 | 1 | 2 | 3 | 4
export type TaskRules = {
  retry?: RetryRule
  /** The time limit of each step, after which the attempt fails. */
  stepTimeoutMs?: number
  /**
   * True if a step continues where an earlier run stopped, so that an instance that shuts down leaves it to others.
   */
  isResumable?: boolean
  /**
   * True if the first step looks up a forgotten execution. Neither a cancel nor the deadline ends the task before this
   * look-up.
   */
  looksUp?: boolean
  /** Completes an end that no step has made: the task was cancelled, expired, or failed too often. */
  completeEnd?(task: TaskView, end: EndResult): EndResult
}

/**
 * Erases the type of the task data, by the only such cast: a row holds what its admission and steps wrote, both
 * typed by the kind.
 */
export const untypedSteps = <Data, Names extends string, Input>(
  steps: Steps<Data, Names, Names, Input>,
): Record<string, Step> => steps as unknown as Record<string, Step>

/** Ties the steps of an internal kind to its data; `taskOf` does so for a kind with a route. */
export const defineTaskKind = <Data, Names extends string, Input = JsonObject>(
  kind: TaskKind<Data, Names, Input>,
): TaskKind => ({ ...kind, steps: untypedSteps(kind.steps) })

export type TaskProgress = { step: number; of: number; text: string }
export type { Json, JsonObject }
