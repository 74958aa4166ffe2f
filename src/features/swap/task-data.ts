import type { BatchPlan, BatchTaskData } from '#engines/evm-batch/batch-rules.ts'
import type { Token } from '#kernel/chains.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { TaskView } from '#kernel/task.ts'
import { type StoredCall, toCalls } from './quotes.ts'

/** What a swap remembers: the route that was checked, and what became of it. */

type End = { chain_id: string; token: Token; is_native: boolean; account: string }
export type SwapTaskData = BatchTaskData & {
  origin: End
  destination: End
  amount_in: string
  amount_out_min: string
  calls: StoredCall[]
  spends: { token: string; amount_units: string; spender: string }[]
  target: string
  usd_micros: string
  deadline_seconds: number
  /** The gas that the provider names for its call; the transaction gets no less. */
  gas_min: string
  /** Nothing is signed from then on. */
  sign_until: string
  settled_by: 'receipt' | 'status'
  provider: string
  provider_request_id: string
  quote_id: string | null
  claim: string | null
  /** Fields of the answer beside those of the task. */
  quote: JsonObject
  policy: JsonObject
  deposit_tx?: string
  deposited_at?: string
  /** Consecutive polls that said failed. */
  failures?: number
}
export type SwapTask = TaskView<SwapTaskData>
export type SwapStep = 'sign' | 'confirm' | 'track'

export const actionOf = (data: SwapTaskData) => ({
  operation: 'swap',
  chainId: data.origin.chain_id,
  tokens:
    data.origin.chain_id === data.destination.chain_id
      ? [data.origin.token.address, data.destination.token.address]
      : [data.origin.token.address],
  recipients: [data.target],
  usdMicros: BigInt(data.usd_micros),
  exit: false,
})

export const planOf = (data: SwapTaskData): BatchPlan => ({
  ...actionOf(data),
  account: data.origin.account,
  calls: toCalls(data.calls),
  spends: data.spends.map(({ token, amount_units, spender }) => ({
    token,
    spender,
    amountUnits: BigInt(amount_units),
  })),
  gasMin: BigInt(data.gas_min),
  ttlSeconds: data.deadline_seconds,
})
