import type { Token } from '#kernel/chains.ts'
import type { EvmCall, Spend } from '#kernel/signer.ts'
import type { JsonObject, Move, NewEvent, TaskView, Tx } from '#kernel/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'

/** What a section supplies for its sponsored batches: the plan of the calls, and how a mined batch settles. */

export type BatchPlan = {
  chainId: string
  account: string
  operation: string
  calls: EvmCall[]
  spends: Spend[]
  tokens: string[]
  recipients: string[]
  usdMicros: bigint
  exit: boolean
  /** Withdraws the whole position: may also use the sponsor's reserve. */
  fullExit?: boolean
  /** A failed simulation at an older block than this is retried. */
  minBlock?: bigint
}

/** The result of a mined batch, read from its events. */
export type Settlement = {
  result: JsonObject
  outcome?: 'executed' | 'partial'
  moves?: Move[]
  data?: JsonObject
  events?: NewEvent[]
  writes?: (tx: Tx) => Promise<void>
}

export type BatchRules = {
  plan(task: TaskView): Promise<BatchPlan>
  /** Undefined where the events that prove the execution are missing. */
  settle(task: TaskView, receipt: Receipt): Promise<Settlement | undefined>
  /** Tokens that the batch may move in addition to the verified list. */
  tokens?: readonly Token[]
  /** Called when a receipt is final, successful or not: earlier reads of the account are stale. */
  onFinal?(task: TaskView): void
}
