import type { GasLimits, Token } from '#kernel/money/chains.ts'
import type { FoundProof } from '#kernel/task/forgotten-execution.ts'
import type { EvmCall, TokenSpend } from '#kernel/task/signer.ts'
import type { SponsoredPlan, SponsoredTaskData } from '#kernel/task/sponsored-effect.ts'
import type { JsonObject, StepResultOf, TaskView } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'

/** A feature supplies for its sponsored batches the plan of the calls, and the events that prove them. */

export const effectKind = 'evm_batch'

/** A plan can name any minimum of gas, so the minimum counts up to this multiple of what the simulation needs. */
const gasMinFactorMax = 3n
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

export const batchGas = (
  { simulatedGas, gasMin = 0n }: { simulatedGas: bigint; gasMin?: bigint | undefined },
  { txMax }: Pick<GasLimits, 'txMax'>,
): bigint => min(max(simulatedGas, min(gasMin, simulatedGas * gasMinFactorMax)), txMax)

export type BatchPlan = SponsoredPlan & {
  calls: EvmCall[]
  spends: TokenSpend[]
  /** A simulation that fails at a block older than this is tried again, since its node is behind the chain. */
  minBlock?: bigint
  /** The least gas for the transaction, for calls whose estimate can be too low; see `batchGas`. */
  gasMin?: bigint
  /** The signature is void from this time on, even if the chain's own limit is later. */
  validUntil?: Date
}

export type BatchTaskData = SponsoredTaskData

export type ExecutedBatch = { receipt: Receipt; calls: readonly EvmCall[] }

export type BatchOptions<Data extends BatchTaskData, Proof> = {
  /** Returns the events that prove the execution, or undefined if incomplete. A successful status proves nothing. */
  prove(task: TaskView<Data>, receipt: Receipt): Proof | undefined | Promise<Proof | undefined>
  /**
   * Proves a batch that the account executed before this task existed, because the database lost the earlier task. The
   * batch has the execution id of this task, but may have other terms; the result says which of them the task data
   * takes over. If this function is absent, `prove` decides by the present terms.
   */
  found?(
    task: TaskView<Data>,
    batch: ExecutedBatch,
  ): FoundProof<Data, Proof> | Promise<FoundProof<Data, Proof>>
  /**
   * Set if the task reserves units of the gateway's own ledger, which no chain shows. A batch that was executed before
   * its task existed spends such units too.
   */
  spendsLedger?: true
  /** Returns what a proven batch changed; the default is the token transfers of the receipt. */
  balanceChanges?(task: TaskView<Data>, receipt: Receipt): JsonObject[]
  tokens?: readonly Token[]
  /** Called when a receipt is final, successful or not, because earlier reads of the account are then stale. */
  onFinal?(task: TaskView<Data>): void
}

export type BatchStepResult<Names extends string> = StepResultOf<BatchTaskData, Names>
