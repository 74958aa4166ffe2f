import type { Token } from '#kernel/money/chains.ts'
import type { Principal } from '#kernel/task/action.ts'
import type { FoundProof, SoughtExecution } from '#kernel/task/forgotten-execution.ts'
import type { SvmInstruction, SvmSpend } from '#kernel/task/signer.ts'
import type { EndResult, JsonObject, StepResultOf, TaskView } from '#kernel/task/task.ts'
import type { Landing } from '#upstreams/solana/landing.ts'

/** What a section supplies for its sponsored transactions on Solana: the instructions, and the balances that prove them. */

export const effectKind = 'svm_transaction'
export const nonceKind = 'svm'

export type SvmPlan = {
  chainId: string
  /** The user's wallet. */
  account: string
  operation: string
  /** Without a compute budget, which is added; rent of token accounts is paid by the sponsor. */
  instructions: SvmInstruction[]
  lookupTables: string[]
  /** What may leave the wallet; each receiver is one of `recipients`. */
  spends: SvmSpend[]
  tokens: string[]
  recipients: string[]
  usdMicros: bigint
  exit: boolean
  principal?: Principal
  /** May also use the sponsor's reserve. */
  fullExit?: boolean
  /** A node that has not reached this slot is not asked. */
  minSlot?: bigint
  /** Asked before the signature, and after the look-up of what was executed before. */
  refusal?(): Promise<EndResult<never> | undefined>
}

/** A node said at this slot, above the last valid block, that it does not know the signature. */
export type Absence = { signature: string; slot: string; at_ms: number }

/** Task data of a transaction, beside that of the section. */
export type SvmTaskData = {
  polls?: number
  absence?: Absence | null
  /** Shown to the user. */
  transactions?: JsonObject[]
  balance_changes?: JsonObject[]
  /** Says beside the message of the task what is known where the outcome is not. */
  note?: string | null
  sought?: SoughtExecution | null
}

export type ProvenLanding = Landing & { signature: string }

export type SvmOptions<Data extends SvmTaskData, Proof> = {
  /** The balance changes that prove the execution; undefined where they are missing. Success alone proves nothing. */
  prove(task: TaskView<Data>, landing: ProvenLanding): Proof | undefined
  /**
   * The proof of a transaction that was executed before its task, under the same execution id and perhaps on other terms,
   * and what of these terms the data of the task take over. Without it the transaction has to prove what is planned now.
   */
  found?(
    task: TaskView<Data>,
    landing: ProvenLanding,
  ): FoundProof<Data, Proof> | Promise<FoundProof<Data, Proof>>
  /** Tokens that the transaction may move in addition to the verified list. */
  tokens?: readonly Token[]
  /** Called when the outcome is final, successful or not: earlier reads of the account are stale. */
  onFinal?(task: TaskView<Data>): void
  /** False: a transaction that was never included ends the task; otherwise it is planned and signed again. */
  signsAgain?: boolean
}

/** What a step of a transaction changes in the data of its task. */
export type SvmStepResult<Names extends string> = StepResultOf<SvmTaskData, Names>
