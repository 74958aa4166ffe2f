import type { Token } from '#kernel/chains.ts'
import type { EvmCall, TokenSpend } from '#kernel/signer.ts'
import type { JsonObject, Move, NewEvent, StepContext, StepResultOf, TaskView, Tx } from '#kernel/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'

/** What a section supplies for its sponsored batches: the plan of the calls, and how a mined batch settles. */

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
  /** Withdraws the whole position: may also use the sponsor's reserve. */
  fullExit?: boolean
  /** A failed simulation at an older block than this is retried. */
  minBlock?: bigint
}

/** Task data of a batch, beside that of the section. */
export type BatchTaskData = {
  polls?: number
  /** Shown to the user. */
  transactions?: JsonObject[]
  balance_changes?: JsonObject[]
}

/** The result of a mined batch, read from its events. */
export type Settlement<Data> = {
  result: JsonObject
  outcome?: 'executed' | 'partial'
  moves?: Move[]
  data?: Partial<Data>
  events?: NewEvent[]
  writes?: (tx: Tx) => Promise<void>
}

export type BatchRules<Data extends BatchTaskData> = {
  plan(task: TaskView<Data>): Promise<BatchPlan>
  /** Undefined where the events that prove the execution are missing. */
  settle(task: TaskView<Data>, receipt: Receipt): Promise<Settlement<Data> | undefined>
  /** Tokens that the batch may move in addition to the verified list. */
  tokens?: readonly Token[]
  /** Called when a receipt is final, successful or not: earlier reads of the account are stale. */
  onFinal?(task: TaskView<Data>): void
}

export type FinalViews = Required<Pick<BatchTaskData, 'transactions' | 'balance_changes'>>
type BatchStep<Data extends BatchTaskData> = (
  task: TaskView<Data>,
  context: StepContext,
) => Promise<StepResultOf<BatchTaskData | (Partial<Data> & FinalViews), 'confirm'>>
/** A task begins at `prepare`. */
export type BatchSteps<Data extends BatchTaskData> = { prepare: BatchStep<Data>; confirm: BatchStep<Data> }
/** What a step of a batch changes in the data of its task. */
export type BatchStepResult = StepResultOf<BatchTaskData, 'confirm'>
