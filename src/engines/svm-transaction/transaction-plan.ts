import type { Token } from '#kernel/money/chains.ts'
import type { FoundProof } from '#kernel/task/forgotten-execution.ts'
import type { SvmInstruction, SvmSpend } from '#kernel/task/signer.ts'
import type { SponsoredPlan, SponsoredTaskData } from '#kernel/task/sponsored-effect.ts'
import type { StepResultOf, TaskView } from '#kernel/task/task.ts'
import type { Landing } from '#upstreams/solana/landed-balance-changes.ts'

/** A feature supplies for its sponsored transactions on Solana the instructions, and the balances that prove them. */

export const effectKind = 'svm_transaction'
export const nonceKind = 'svm'

export type SvmPlan = SponsoredPlan & {
  /** The instructions, to which a compute budget is added later. The sponsor pays the rent of token accounts. */
  instructions: SvmInstruction[]
  lookupTables: string[]
  /** The amounts that may leave the wallet; each receiver is one of the plan's `recipients`. */
  spends: SvmSpend[]
}

/** A node's reply, at a slot above the last valid block, that it does not know the signature. */
export type Absence = { signature: string; slot: string; at_ms: number }

export type SvmTaskData = SponsoredTaskData & { absence?: Absence | null }

export type ProvenLanding = Landing & { signature: string }

export type SvmOptions<Data extends SvmTaskData, Proof> = {
  /** Returns balance changes that prove the execution, or undefined if incomplete. Success alone proves nothing. */
  prove(task: TaskView<Data>, landing: ProvenLanding): Proof | undefined
  /**
   * Proves a transaction that the wallet executed before this task existed, because the database lost the earlier task.
   * The transaction has the execution id of this task, but may have other terms; the result says which of them the task
   * data takes over. If this function is absent, `prove` decides by the present terms.
   */
  found?(
    task: TaskView<Data>,
    landing: ProvenLanding,
  ): FoundProof<Data, Proof> | Promise<FoundProof<Data, Proof>>
  tokens?: readonly Token[]
  /** Called when the outcome is final, successful or not, because earlier reads of the account are then stale. */
  onFinal?(task: TaskView<Data>): void
  /** Whether a transaction that was never included is signed again (by default); otherwise its task ends. */
  signsAgain?: boolean
}

export type SvmStepResult<Names extends string> = StepResultOf<SvmTaskData, Names>
