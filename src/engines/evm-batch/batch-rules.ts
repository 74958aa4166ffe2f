import type { GasLimits, Token } from '#kernel/money/chains.ts'
import type { Principal } from '#kernel/task/action.ts'
import type { FoundProof, SoughtExecution } from '#kernel/task/forgotten-execution.ts'
import type { EvmCall, TokenSpend } from '#kernel/task/signer.ts'
import type { EndResult, JsonObject, StepResultOf, TaskView } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'

/** What a section supplies for its sponsored batches: the plan of the calls, and the events that prove them. */

export const effectKind = 'evm_batch'

/** A plan can name any gas: beyond this multiple of what its simulation needs it counts no more. */
const gasMinFactorMax = 3n
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** The gas limit of the transaction of a batch. */
export const batchGas = (
  { simulatedGas, gasMin = 0n }: { simulatedGas: bigint; gasMin?: bigint | undefined },
  { txMax }: Pick<GasLimits, 'txMax'>,
): bigint => min(max(simulatedGas, min(gasMin, simulatedGas * gasMinFactorMax)), txMax)

export type BatchPlan = {
  chainId: string
  account: string
  operation: string
  calls: EvmCall[]
  spends: TokenSpend[]
  tokens: string[]
  recipients: string[]
  usdMicros: bigint
  exit: boolean
  principal?: Principal
  /** Withdraws the whole position: may also use the sponsor's reserve. */
  fullExit?: boolean
  /** A failed simulation at an older block than this is retried. */
  minBlock?: bigint
  /** The transaction gets no less gas, where an estimate can be too low; see `batchGas`. */
  gasMin?: bigint
  /** The signature is void from then on, where that of the chain would last longer. */
  validUntil?: Date
  /** Asked before the signature, and after the look-up of what was executed before. */
  refusal?(): Promise<EndResult<never> | undefined>
}

/** Task data of a batch, beside that of the section. */
export type BatchTaskData = {
  polls?: number
  /** Shown to the user. */
  transactions?: JsonObject[]
  balance_changes?: JsonObject[]
  /** Says beside the message of the task what is known where the outcome is not. */
  note?: string | null
  sought?: SoughtExecution | null
}

export type ExecutedBatch = { receipt: Receipt; calls: readonly EvmCall[] }

export type BatchOptions<Data extends BatchTaskData, Proof> = {
  /** The events that prove the execution; undefined where they are missing. A successful status proves nothing. */
  prove(task: TaskView<Data>, receipt: Receipt): Proof | undefined | Promise<Proof | undefined>
  /**
   * The proof of a batch that was executed before its task, under the same execution id and perhaps on other terms, and
   * what of these terms the data of the task take over. Without it the batch has to prove what is planned now.
   */
  found?(
    task: TaskView<Data>,
    batch: ExecutedBatch,
  ): FoundProof<Data, Proof> | Promise<FoundProof<Data, Proof>>
  /** What the task holds is known to the ledger alone: it is spent also where the batch was executed before. */
  spendsLedger?: true
  /** What the batch changed, once it is proven; without it they are the token transfers of the receipt. */
  balanceChanges?(task: TaskView<Data>, receipt: Receipt): JsonObject[]
  /** Tokens that the batch may move in addition to the verified list. */
  tokens?: readonly Token[]
  /** Called when a receipt is final, successful or not: earlier reads of the account are stale. */
  onFinal?(task: TaskView<Data>): void
}

/** What a step of a batch changes in the data of its task. */
export type BatchStepResult<Names extends string> = StepResultOf<BatchTaskData, Names>
