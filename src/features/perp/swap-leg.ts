import { effectKind } from '#engines/evm-batch/batch-plan.ts'
import type { SwapFields } from '#features/swap/route/request-terms.ts'
import type { SwapLegs } from '#features/swap/swap-as-leg.ts'
import type { SwapTaskData } from '#features/swap/task-data.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { soldPart } from '#kernel/money/partial-fill.ts'
import { executedBefore, outsideId } from '#kernel/task/forgotten-execution.ts'
import type {
  EndResult,
  FailedResult,
  JsonObject,
  StepContext,
  StepResultOf,
  TaskView,
} from '#kernel/task/task.ts'
import type { Evm } from '#upstreams/evm/evm.ts'

/** This module runs a swap as one leg of a funding or withdrawal, and shows it in the result of that task. */

export const swapStepNames = { sign: 'swap', confirm: 'swapped', track: 'track' } as const
export type SwapLegStep = (typeof swapStepNames)[keyof typeof swapStepNames]
/**
 * This long after the first leg has delivered, the second leg is no longer tried, and the money stays where the first
 * leg brought it.
 */
export const secondLegMs = 10 * 60_000
/**
 * These faults may pass soon: a node may lag behind the one that showed the arrival, routes come and go, and a budget
 * for gas gets back what the first leg did not use.
 */
const briefReasons: readonly unknown[] = [
  'insufficient_balance',
  'no_route',
  'insufficient_liquidity',
  'sponsor_budget',
]
const briefMs = 15_000

/** Whether the second leg is prepared again after this fault. */
export const mayPass = ({ retryable, code, extras }: Fault, ageMs: number): boolean =>
  briefReasons.includes(code) || briefReasons.includes(extras.reason) ? ageMs < briefMs : retryable

/** What the first leg delivered, in units, and when. */
export type Delivered = { units: string; txHash: string | null; at: string }
export const ageOf = ({ at }: Delivered, now: Date): number => now.getTime() - Date.parse(at)

type SecondLeg = { chain: Pick<Evm, 'account'>; chainId: string }
/**
 * Whether the account has executed the second leg already, although the database, restored from a backup, has no record
 * of it. The money of the leg has then left the wallet, so neither a missing balance nor a delay may end the task.
 */
export async function isExecutedBefore(
  { chain, chainId }: SecondLeg,
  task: TaskView<{ account: string }>,
): Promise<boolean> {
  const executionId = outsideId(task)
  if (executionId === undefined) return false
  const { executedTimes } = await chain.account(task.data.account, executionId)
  return executedTimes > executedBefore(task, { kind: effectKind, chainId })
}
/**
 * Continues with the step that signs: instead of signing, it looks the executed transaction up and settles the leg by
 * it.
 */
export const settleInStep = <Names extends string, Data>(next: Names, data: Data) =>
  ({ park: { afterMs: 0, next }, state: 'reconciling', outcome: 'unknown', data }) as const

export type SwapLegTask = TaskView<SwapTaskData>

/** The fields that the swap shares with the other leg: the poll counter, and what the user sees of both legs. */
type SharedData = {
  polls?: number
  transactions?: JsonObject[]
  balance_changes?: JsonObject[]
  note?: string | null
}
/** The data of a task with a swap, which keeps the swap's own data apart from those of the other leg. */
export type SwapLegData = SharedData & { swap?: SwapTaskData }
type SwapResult = StepResultOf<Partial<SwapTaskData>, SwapLegStep>
type LegResult = StepResultOf<SwapLegData, SwapLegStep>
export type SwapEnd<Patch = SwapLegData> = Extract<StepResultOf<Patch, SwapLegStep>, { end: string }>
type LegStep<Data, Names extends string> = (
  task: TaskView<Data>,
  context: StepContext,
) => Promise<StepResultOf<Partial<Data> | SwapLegData, Names | SwapLegStep>>

export function swapTaskOf({ data, ...task }: TaskView<SwapLegData>): SwapLegTask {
  const { swap, polls, transactions, balance_changes, note: _note } = data
  if (!swap) throw new Error(`task ${task.id} has no swap`)
  return {
    ...task,
    data: {
      ...swap,
      ...(polls !== undefined && { polls }),
      ...(transactions && { transactions }),
      ...(balance_changes && { balance_changes }),
    },
  }
}

function patchOf(
  { swap }: SwapLegData,
  { polls, transactions, balance_changes, ...own }: Partial<SwapTaskData>,
): SwapLegData {
  const { note, ...rest } = own
  return {
    swap: { ...swap!, ...rest },
    ...(polls !== undefined && { polls }),
    ...(transactions && { transactions }),
    ...(balance_changes && { balance_changes }),
    ...(note !== undefined && { note }),
  }
}

/**
 * The results of swap steps define no `onRefused` for their signature, so only their `data` has to get another type.
 */
const legResult = (data: SwapLegData, result: SwapResult): LegResult =>
  ({ ...result, ...(result.data && { data: patchOf(data, result.data) }) }) as LegResult

/** Returns the end of a swap as an end of the task that contains it. */
export const legEnd = (data: SwapLegData, end: EndResult<Partial<SwapTaskData>>): SwapEnd =>
  legResult(data, end) as SwapEnd

export type SwapLegRules<Data, Names extends string> = {
  onEnd(task: TaskView<Data>, end: SwapEnd, now: Date): StepResultOf<Partial<Data> | SwapLegData, Names>
  onRefused(task: TaskView<Data>, fault: Fault): FailedResult<Record<never, never>>
}

export function swapLegSteps<Data extends SwapLegData, Names extends string>(
  swaps: SwapLegs | undefined,
  { onEnd, onRefused }: SwapLegRules<Data, Names>,
): Record<SwapLegStep, LegStep<Data, Names>> {
  const steps = swaps?.steps(swapStepNames)
  const step =
    (name: keyof typeof swapStepNames): LegStep<Data, Names> =>
    async (task, context) => {
      if (!steps) throw new Fault('unavailable', 'No provider of swaps is configured')
      const result = legResult(task.data, await steps[name](swapTaskOf(task), context))
      if ('sign' in result)
        return { ...result, sign: { ...result.sign, onRefused: (fault) => onRefused(task, fault) } }
      return 'end' in result ? onEnd(task, result, context.now) : result
    }
  return { swap: step('sign'), swapped: step('confirm'), track: step('track') }
}

/** Maps the fields of a swap to the names that they have in requests for a funding or withdrawal. */
export const swapFieldNames: SwapFields = {
  chain_id_in: 'source_chain_id',
  chain_id_out: 'destination_chain_id',
  token_in: 'source_token',
  token_out: 'destination_token',
  amount: 'amount',
  amount_usd: 'amount_usd',
}

type LegView = {
  role: 'swap' | 'deposit' | 'withdrawal'
  status: 'completed' | 'failed' | 'not_started'
  chain_id: string
  token_address: string
  amount: string
  tx_hash: string | null
  error: string | null
}
/** The money that did not reach its destination, and the place where it is. */
export type RemainingView = {
  place: 'wallet' | 'provider'
  chain_id: string
  token_address: string
  symbol: string
  amount: string
  account: string
  tx_hash: string | null
}

export const legView = (leg: LegView): JsonObject => leg

/** Returns the units that an executed swap has delivered, as the chain proves them. */
export function swappedOf({ result }: Pick<EndResult<unknown>, 'result'>, now: Date): Delivered {
  const { amount_out: units = '0', tx_hash: txHash = null } = (result ?? {}) as {
    amount_out?: string
    tx_hash?: string | null
  }
  return { units, txHash, at: now.toISOString() }
}

/** Returns the money that a swap did not deliver: it was refunded, never sent, or is still with the provider. */
export function remainingAfter(
  { swap }: SwapLegData,
  end: Pick<EndResult<unknown>, 'outcome' | 'result'>,
): RemainingView {
  const { origin, amount_in, amount_out_min } = swap!
  const { refunded = null, amount_out: outUnits = '0' } = (end.result ?? {}) as {
    refunded?: { chain_id: string; token_address: string; amount: string; tx_hash: string | null } | null
    amount_out?: string
  }
  const sale = { inUnits: BigInt(amount_in), minOutUnits: BigInt(amount_out_min) }
  const leftUnits = sale.inUnits - (outUnits === '0' ? 0n : soldPart(sale, BigInt(outUnits)))
  const own = { chain_id: origin.chain_id, token_address: origin.token.address, account: origin.account }
  if (refunded)
    return {
      ...own,
      ...refunded,
      place: 'wallet',
      symbol: refunded.token_address === origin.token.address ? origin.token.symbol : '',
    }
  const place = end.outcome === 'not_executed' ? 'wallet' : 'provider'
  return {
    ...own,
    place,
    symbol: origin.token.symbol,
    amount: String(leftUnits),
    tx_hash: place === 'wallet' ? null : (swap!.deposit_tx ?? null),
  }
}

/** Shows a swap that delivered nothing or too little as a failed leg. */
export const failedSwapLeg = ({ swap }: SwapLegData, { error, result }: FailedResult<unknown>): JsonObject =>
  legView({
    role: 'swap',
    status: 'failed',
    chain_id: swap!.destination.chain_id,
    token_address: swap!.destination.token.address,
    amount: String(result?.amount_out ?? '0'),
    tx_hash: swap!.deposit_tx ?? null,
    error: error.message,
  })

export const swapFeesUsd = ({ swap }: SwapLegData): string => String(swap?.quote.fees_usd ?? '0')
