import type { Token } from './chains.ts'
import type { Fault } from './fault.ts'
import type { Json, JsonObject } from './json.ts'

/** The language in which a feature tells the runner what a task does. Pure types: the runner alone writes. */

export const taskStatuses = ['pending', 'running', 'completed', 'failed', 'cancelled'] as const
export type TaskStatus = (typeof taskStatuses)[number]
export const outcomes = ['executed', 'not_executed', 'partial', 'unknown'] as const
export type Outcome = (typeof outcomes)[number]
export type FinalOutcome = Exclude<Outcome, 'unknown'>
/** `state` while a task lives; when it failed or was cancelled, `state` is the reason code instead. */
export const liveStates = [
  'accepted',
  'awaiting_approval',
  'quoting',
  'held',
  'signed',
  'submitted',
  'confirming',
  'waiting',
  'settling',
  'reconciling',
  'review',
] as const
export type LiveState = (typeof liveStates)[number]

declare const txBrand: unique symbol
/** A database transaction in flight, opaque here: `store` knows how to write through it. */
export type Tx = { readonly [txBrand]: 'tx' }

/** An account of the ledger: whose, of what asset, and which sub-account of that owner. */
export type AccountRef = { owner: string; asset: string; subAccount: string }
export type LedgerToken = Pick<Token, 'symbol' | 'decimals' | 'address'>
export const systemOwner = '00000000-0000-7000-8000-000000000000'
/** The far side of every deposit and payment; the only sub-account that may go below zero. */
export const externalAccount = (asset: string): AccountRef => ({
  owner: systemOwner,
  asset,
  subAccount: 'external',
})

/**
 * `transfer` moves at once. `hold` sets units aside for `credit` until `post` delivers them or `void` gives them back.
 * `key` is unique per debit account: a repeated move changes nothing.
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
      /** What a refusal calls the asset. */
      token: LedgerToken
    }
  | { move: 'post'; key: string; amountUnits?: bigint }
  | { move: 'void'; key: string }

/**
 * What a chain or venue said an account holds. `version` is the account's counter read BEFORE asking: if a hold was
 * posted or voided in between, the answer is of unknown age and the admission starts again.
 */
export type BalanceSnapshot = { account: AccountRef; totalUnits: bigint; version: bigint }

export type NonceSequence = { kind: string; chain: string; signer: string }

/** Something that will change the world outside. Its bytes and id are stored before they are sent. */
export type NewEffect = {
  kind: string
  externalId: string
  intent: JsonObject
  signed: JsonObject
  policyReceipt: string
  validUntil?: Date
}
/** A transaction that carries an effect; a replacement is a further carrier under the same nonce. */
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
  /** Committed by this instance in the step before, so that nobody can have sent it. What is read again never has it. */
  neverSent?: true
}
export type EffectUpdate = {
  effectId: string
  status: EffectStatus
  proof?: JsonObject
  attemptExternalId?: string
}

/**
 * An event for the owner of the task, beside the task events that the runner writes itself. `taskId`: whose fact it is,
 * where no step of that task writes it.
 */
export type NewEvent = {
  type: string
  taskId?: string
  subject?: { kind: string; id: string }
  data: JsonObject
}

type StepResultBase = {
  /** Merged into the memory of the task. */
  data?: JsonObject
  moves?: Move[]
  effects?: EffectUpdate[]
  events?: NewEvent[]
  /** Writes of the feature's own tables, in the transaction that commits the step. */
  writes?: (tx: Tx) => Promise<void>
}

/**
 * The one place where a signature is made: inside the fenced transaction, with the nonce of the lane under its row
 * lock. A crash before the commit consumes no nonce and sends nothing.
 */
export type Intent = {
  nonceSequence: NonceSequence
  /** The number is at least this: venues whose numbers are times take none that lies behind. */
  minNonce?: bigint
  build: (nonce: bigint, tx: Tx) => Promise<SignedEffect>
  /**
   * For the first step of a task that does not exist yet. It is sent together with the `begin` and the number, and
   * stands alone where that was refused: so it only reads and locks, and numbers may be left out in such a lane.
   */
  signOnAccept?: (tx: Tx) => Promise<SignWithNonce>
  /** What becomes of the step where the signature is refused; without it a refusal is a failed attempt. */
  onRefused?: (fault: Fault) => StepResult
}
export type SignedEffect = { effect: NewEffect; txAttempt: NewTxAttempt }
/** `also` is written beside the task, in statements that leave at once: the commit leaves with them. */
export type SignWithNonce = (nonce: bigint) => Promise<SignedEffect & { writes: () => Promise<void> }>
/** A further carrier for a live effect, under the nonce of its first one. */
export type Replacement = {
  effectId: string
  nonceSequence: NonceSequence
  build: (tx: Tx) => Promise<NewTxAttempt>
}

export type StepResult =
  | (StepResultBase & { next: string; state?: LiveState })
  | (StepResultBase & { intend: Intent; next: string; state?: LiveState })
  | (StepResultBase & { replace: Replacement; next: string; state?: LiveState })
  | (StepResultBase & { park: { afterMs: number; next: string }; state?: LiveState; outcome?: 'unknown' })
  | (StepResultBase & { end: 'completed'; outcome: 'executed' | 'partial'; result: JsonObject })
  | (StepResultBase & {
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
    })

/** What a step sees. `effects` are all effects of the task, with what has been tried to carry them. */
export type TaskView = {
  id: string
  userId: string
  kind: string
  data: JsonObject
  input: JsonObject
  attempt: number
  effects: Effect[]
  createdAt: Date
  deadline: Date
}
export type StepContext = { now: Date; signal: AbortSignal }
export type Step = (task: TaskView, context: StepContext) => Promise<StepResult>

export type RetryRule = { attemptsMax: number; firstMs: number; maxMs: number }

/** The decision of `admit`: what the task starts with, committed together with the task itself. */
export type Admission = {
  data: JsonObject
  first: string
  deadlineMs?: number
  snapshots?: BalanceSnapshot[]
  /** Reads again what `observe` tells, after the account was settled in between. */
  rereadSnapshots?: () => Promise<BalanceSnapshot[]>
  moves?: (taskId: string) => Move[]
  writes?: (tx: Tx, taskId: string) => Promise<void>
  /**
   * The first step asks nobody and signs: by its `opening` it is committed together with the promise, where this
   * instance has room for the task. That reserves for itself, and `also` is left out.
   */
  signOnAccept?: boolean
}

/** A kind of task: its steps by name. Old versions stay while a row carries them. */
export type TaskKind = {
  kind: string
  version: number
  priority: 0 | 1 | 2
  steps: Record<string, Step>
  retry?: RetryRule
  /** Each step may run this long before it counts as failed. */
  stepTimeoutMs?: number
  /** Runs in the transaction in which the task ends with nothing executed, whatever ended it. */
  onNotExecuted?: (tx: Tx, taskId: string) => Promise<void>
}

export type TaskProgress = { step: number; of: number; text: string }
export type { Json, JsonObject }
