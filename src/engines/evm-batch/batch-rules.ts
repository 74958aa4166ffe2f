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
  /** Brings all of a position home: carried also out of the sponsor's reserve. */
  fullExit?: boolean
  /** A refusal by an older state of the chain than this is no refusal. */
  minBlock?: bigint
}

/** What a mined batch did, read from its events. */
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
  /** Undefined where the events that prove the deed are missing. */
  settle(task: TaskView, receipt: Receipt): Promise<Settlement | undefined>
  /** Tokens that the batch may move beside those of the verified list. */
  tokens?: readonly Token[]
  /** A receipt reached finality, whatever it says: what was read of the account before is old. */
  onFinal?(task: TaskView): void
}
