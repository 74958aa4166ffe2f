import type { Token } from '#kernel/money/chains.ts'
import type { Principal } from '#kernel/task/action.ts'
import type { FoundProof, SoughtExecution } from '#kernel/task/forgotten-execution.ts'
import type { SvmInstruction, SvmSpend } from '#kernel/task/signer.ts'
import type { EndResult, JsonObject, StepResultOf, TaskView } from '#kernel/task/task.ts'
import type { Landing } from '#upstreams/solana/landing.ts'

/** What a section supplies for its sponsored transactions on Solana: the instructions, and the balances as proof. */

export const effectKind = 'svm_transaction'
export const nonceKind = 'svm'

export type SvmPlan = {
  chainId: string
  account: string
  operation: string
  /** The instructions lack a compute budget, which is added later. The sponsor pays the rent of token accounts. */
  instructions: SvmInstruction[]
  lookupTables: string[]
  /** What may leave the wallet; each receiver is one of the `recipients`. */
  spends: SvmSpend[]
  tokens: string[]
  recipients: string[]
  usdMicros: bigint
  exit: boolean
  principal?: Principal
  /** May also use the sponsor's reserve. */
  fullExit?: boolean
  /** Only a node that has reached this slot is asked. */
  minSlot?: bigint
  /** Called before the signature, and after the look-up of an earlier execution. */
  refusal?(): Promise<EndResult<never> | undefined>
}

/** A node said at this slot, above the last valid block, that it does not know the signature. */
export type Absence = { signature: string; slot: string; at_ms: number }

export type SvmTaskData = {
  polls?: number
  absence?: Absence | null
  /** Shown to the user. */
  transactions?: JsonObject[]
  balance_changes?: JsonObject[]
  /** Says what is known while the outcome is unknown; it is shown with the message of the task. */
  note?: string | null
  sought?: SoughtExecution | null
}

export type ProvenLanding = Landing & { signature: string }

export type SvmOptions<Data extends SvmTaskData, Proof> = {
  /** Returns the balance changes that prove the execution, if they are complete. Success alone proves nothing. */
  prove(task: TaskView<Data>, landing: ProvenLanding): Proof | undefined
  /**
   * Proves a transaction that was executed before its task existed, under the same execution id but perhaps on
   * other terms, and says which of these terms the task data takes over. Without it, such a transaction must prove
   * what is planned now.
   */
  found?(
    task: TaskView<Data>,
    landing: ProvenLanding,
  ): FoundProof<Data, Proof> | Promise<FoundProof<Data, Proof>>
  tokens?: readonly Token[]
  /** Called when the outcome is final, successful or not, because earlier reads of the account are then stale. */
  onFinal?(task: TaskView<Data>): void
  /** If false, a transaction that was never included ends the task; otherwise it is planned and signed again. */
  signsAgain?: boolean
}

export type SvmStepResult<Names extends string> = StepResultOf<SvmTaskData, Names>
