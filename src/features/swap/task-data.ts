import type { BatchPlan, BatchTaskData } from '#engines/evm-batch/batch-plan.ts'
import type { SvmPlan, SvmTaskData } from '#engines/svm-transaction/transaction-plan.ts'
import type { Token } from '#kernel/money/chains.ts'
import type { EvmCall, SvmInstruction } from '#kernel/task/signer.ts'
import type { TaskView } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { SwapHookView } from './contract.ts'
import type { SafeRoute } from './route/route-checks.ts'
import { type StoredCall, storedCalls, toCalls } from './route/stored-route.ts'

type SwapEnd = { chain_id: string; token: Token; is_native: boolean; account: string }
export type StoredSteps =
  | { family: 'evm'; calls: StoredCall[]; spends: StoredSpend<{ spender: string }>[] }
  | {
      family: 'solana'
      instructions: SvmInstruction[]
      lookup_tables: string[]
      spends: StoredSpend<{ to: string }>[]
    }
type StoredSpend<Receiver> = Receiver & { token: string; amount_units: string }

export type SwapTaskData = BatchTaskData &
  SvmTaskData & {
    origin: SwapEnd
    destination: SwapEnd
    amount_in: string
    amount_out_min: string
    steps: StoredSteps
    target: string
    usd_micros: string
    /** The gas that the provider names for its call; the transaction gets at least this much. */
    gas_min: string
    /** From this time on nothing is signed, and an EVM signature that was made before is void. */
    sign_until: string
    settled_by: 'receipt' | 'status'
    /** The newest block or slot at the admission, for each chain on which a payment can end the swap. */
    heads?: Record<string, number>
    /** The times of the blocks in `heads`, by the clocks of their chains. */
    head_seconds?: Record<string, number>
    provider: string
    provider_request_id: string
    /** The id in the deposit's event; undefined in tasks of an earlier version, whose deposits name the request. */
    deposit_id?: string
    quote_id: string | null
    claim: string | null
    quote: JsonObject
    policy: JsonObject
    security: JsonObject[]
    deposit_tx?: string
    deposited_at?: string
    /** The swap returns money to the user, so that spent caps and kill switches do not stop it. */
    is_exit?: boolean
    /** The swap belongs to an order, which the policy allowed when the order was made. */
    is_order?: boolean
    attached?: AttachedTpSl
    cancels_hooks?: boolean
    hooks?: SwapHookView[]
    cancelled_hook_ids?: string[]
    /** The time since which every answer of the provider has said failed. */
    failed_since?: string | null
    /** The time since which every answer has named a payment that no chain has proven. */
    paid_since?: string | null
    /** Set while too little has arrived; `paid` lists the payments, which have been the same since `since`. */
    short?: { since: string; paid: string } | null
    /** Every transaction that the provider has named as a payment. */
    announced?: { chain_id: string; tx_hash: string }[]
    /** The units that the end of the swap has counted: `fill` of the bought token, `back` of the deposited one. */
    paid?: PaidUnits
    /** A sentence that is added to the task's message, about the missing amount or the place of the money. */
    note?: string | null
  }
export type PaidUnits = { fill: string; back: string }
export type AttachedTpSl = {
  legs: {
    id: string
    type: SwapHookView['type']
    fraction: string | null
    price: string | null
    sell: string
  }[]
  group: string | null
  slippage_bps: number
  max_price_impact_bps?: number
}
export type SwapTask = TaskView<SwapTaskData>
export type SwapStep = 'sign' | 'confirm' | 'track'
/** The names that the steps of a swap have in the task that contains them. */
export type SwapStepNames<Names extends string = SwapStep> = Record<SwapStep, Names>
export const ownNames: SwapStepNames = { sign: 'sign', confirm: 'confirm', track: 'track' }

export const actionOf = (data: SwapTaskData) => ({
  operation: 'swap',
  chainId: data.origin.chain_id,
  tokens:
    data.origin.chain_id === data.destination.chain_id
      ? [data.origin.token.address, data.destination.token.address]
      : [data.origin.token.address],
  recipients: [data.target],
  usdMicros: BigInt(data.usd_micros),
  exit: data.is_exit ?? false,
  ...(data.is_order && { principal: 'gateway' as const }),
})

const unitsOf = <Spend extends { token: string; amount_units: string }>({
  amount_units,
  ...spend
}: Spend) => ({
  ...spend,
  amountUnits: BigInt(amount_units),
})

const stepsOf = <Family extends StoredSteps['family']>(
  { steps }: SwapTaskData,
  family: Family,
): Extract<StoredSteps, { family: Family }> => {
  if (steps.family !== family) throw new Error(`a swap from ${steps.family} is planned as one from ${family}`)
  return steps as Extract<StoredSteps, { family: Family }>
}

export const callsOf = (data: SwapTaskData): EvmCall[] => toCalls(stepsOf(data, 'evm').calls)

export const batchPlan = (data: SwapTaskData): BatchPlan => ({
  ...actionOf(data),
  account: data.origin.account,
  calls: callsOf(data),
  spends: stepsOf(data, 'evm').spends.map(unitsOf),
  gasMin: BigInt(data.gas_min),
  validUntil: new Date(data.sign_until),
})

export function svmPlan(data: SwapTaskData): SvmPlan {
  const { instructions, lookup_tables: lookupTables, spends } = stepsOf(data, 'solana')
  const account = data.origin.account
  return { ...actionOf(data), account, instructions, lookupTables, spends: spends.map(unitsOf) }
}

export const storedSteps = (safe: SafeRoute): StoredSteps =>
  safe.family === 'evm'
    ? {
        family: 'evm',
        calls: storedCalls(safe.calls),
        spends: safe.spends.map(({ amountUnits, ...spend }) => ({
          ...spend,
          amount_units: String(amountUnits),
        })),
      }
    : {
        family: 'solana',
        instructions: safe.instructions,
        lookup_tables: safe.lookupTables,
        spends: safe.spends.map(({ amountUnits, ...spend }) => ({
          ...spend,
          amount_units: String(amountUnits),
        })),
      }
