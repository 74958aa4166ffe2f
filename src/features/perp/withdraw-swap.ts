import type { ReserveSpend } from '#durable/accept/reserve-spend.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import { effectKind } from '#engines/evm-batch/batch-plan.ts'
import type { PreparedSwap } from '#features/swap/route/prepare-swap.ts'
import type { SwapLegs } from '#features/swap/swap-as-leg.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits, mulDiv, toMicros, toUnits, usdcDecimals, usdDecimals } from '#kernel/money/money.ts'
import { combineWrites } from '#kernel/task/effect-steps.ts'
import { lookUpAgain } from '#kernel/task/forgotten-execution.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type {
  EndResult,
  FailedResult,
  JsonObject,
  StepContext,
  StepResultOf,
  TaskProgress,
  TaskView,
} from '#kernel/task/task.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { FundingRoute } from './funding-route.ts'
import {
  ageOf,
  type Delivered,
  failedSwapLeg,
  isExecutedBefore,
  legView,
  mayPass,
  remainingAfter,
  type SwapEnd,
  type SwapLegData,
  type SwapLegStep,
  secondLegMs,
  settleInStep,
  swapFeesUsd,
  swapFieldNames,
  swapLegSteps,
  swappedOf,
  swapStepNames,
} from './swap-leg.ts'

/** This module runs the swap after a withdrawal, and says where the money is if the swap cannot follow. */

export type SwapAfterDeps = {
  route: FundingRoute
  chain: Pick<Evm, 'account'> & { row: Pick<Evm['row'], 'displayName'> }
  /** The swaps after a payout; undefined if no provider of swaps is configured. */
  swaps: SwapLegs | undefined
  reserve: ReserveSpend
  batches: Pick<EvmBatches, 'releaseGas'>
}
export type WithdrawEndDeps = Pick<SwapAfterDeps, 'route' | 'batches'> & {
  chain: Pick<SwapAfterDeps['chain'], 'row'>
}
export type Destination = { chain: string | number; token: string; slippage_bps?: number }
export type SwapAfterData = SwapLegData & {
  account: string
  amount_usd: string
  transfer_usd: string | null
  /** The token that the payout is swapped to; if absent, the payout stays in USDC. */
  destination?: Destination
  received?: Delivered
  /** Whether the swap was executed before the database went back to an earlier time; then nothing is reserved. */
  is_sold?: boolean
  progress?: TaskProgress
}
export type SwapAfterStep = SwapLegStep | 'quote'
type SwapAfterTask = TaskView<SwapAfterData>
type Result = StepResultOf<SwapAfterData | Partial<SwapAfterData>, SwapAfterStep>
type Failure = Omit<FailedResult<SwapLegData>, 'end' | 'outcome'>

const pollBackoff = { firstMs: 300, maxMs: 5_000 }

type LegRequest = {
  userId: string
  destination: Destination
  amountUnits: bigint
  /** Whether the payout that will be swapped has yet to arrive. */
  isAhead?: boolean
}

export const prepareLeg = (
  { route }: Pick<SwapAfterDeps, 'route'>,
  swaps: SwapLegs,
  { userId, destination, amountUnits, isAhead = false }: LegRequest,
): Promise<PreparedSwap> =>
  swaps.prepare(
    {
      chain_id_in: route.chainId,
      token_in: route.token,
      chain_id_out: destination.chain,
      token_out: destination.token,
      amount: String(amountUnits),
      ...(destination.slippage_bps !== undefined && { slippage_bps: destination.slippage_bps }),
    },
    { userId, fields: { ...swapFieldNames, amount: 'amount_usd' }, isAhead },
  )

export const swapNext = (received: Delivered) =>
  ({
    next: 'quote',
    state: 'settling',
    data: { received, polls: 0, progress: { step: 2, of: 2, text: 'Swap of the payout' } },
  }) as const

export const swapAfterWithdrawal = (
  deps: SwapAfterDeps,
): Record<SwapAfterStep, (task: SwapAfterTask, context: StepContext) => Promise<Result>> => {
  const leg = swapLegSteps<SwapAfterData, SwapAfterStep>(deps.swaps, {
    onEnd: (task, end, now) =>
      task.data.is_sold && end.outcome === 'not_executed' ? quoteAgain : afterSwap(deps, task, { end, now }),
    onRefused: (task, { code, message }) => withdrawalSwapFailed(deps, task, { error: { code, message } }),
  })
  return {
    quote: (task, context) => quoteSwap(deps, task, context),
    ...leg,
    async swap(task, context) {
      const result = await leg.swap(task, context)
      return task.data.is_sold && 'sign' in result ? quoteAgain : result
    },
  }
}

/**
 * Leads back to the quote if a node that a step asks does not know the swap as executed, although another node did; the
 * swap is then prepared like a new one.
 */
const quoteAgain = { next: 'quote', state: 'settling' } as const

/** Quotes the swap of the payout again, because the admission's quote is old and its amount was not exact. */
async function quoteSwap(deps: SwapAfterDeps, task: SwapAfterTask, { now }: StepContext): Promise<Result> {
  const { userId, data } = task
  const received = data.received!
  if (await isExecutedBefore({ chain: deps.chain, chainId: deps.route.chainId }, task))
    return quoteSold(deps, task, now)
  const ageMs = ageOf(received, now)
  if (ageMs > secondLegMs)
    return withdrawalSwapFailed(deps, task, {
      error: { code: 'expired', message: 'The swap could not be prepared in time' },
    })
  const refused = (fault: Fault): Result => {
    const { code, message } = fault
    if (!mayPass(fault, ageMs)) return withdrawalSwapFailed(deps, task, { error: { code, message } })
    return { ...pollAgain(task, 'quote', pollBackoff), state: 'settling' }
  }
  try {
    const { swaps, reserve } = deps
    if (!swaps) throw new Fault('unavailable', 'No provider of swaps is configured')
    const prepared = await prepareLeg(deps, swaps, {
      userId,
      destination: data.destination!,
      amountUnits: BigInt(received.units),
    })
    const { data: swap, spend } = await swaps.fund(prepared)
    return {
      next: swapStepNames.sign,
      state: 'held',
      data: { swap, is_sold: false, polls: 0 },
      writes: (tx) => reserve(tx, task, spend, now),
      onWritesRefused: refused,
    }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return refused(fault)
  }
}

/**
 * Quotes a swap that was executed before the database was restored from a backup, because its task lacks the data. If
 * nobody quotes it any more, an operator ends the task by the transaction of the swap.
 */
async function quoteSold(deps: SwapAfterDeps, task: SwapAfterTask, now: Date): Promise<Result> {
  const { userId, data } = task
  try {
    const { swaps } = deps
    if (!swaps) throw new Fault('unavailable', 'No provider of swaps is configured')
    const amountUnits = BigInt(data.received!.units)
    const prepared = await prepareLeg(deps, swaps, {
      userId,
      destination: data.destination!,
      amountUnits,
      isAhead: true,
    })
    const swap = swaps.quoteSold(prepared)
    return settleInStep(swapStepNames.sign, { swap, is_sold: true, polls: 0, note: null, sought: null })
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    const state = fault.retryable ? 'reconciling' : 'review'
    const sought = { chain_id: deps.route.chainId, kind: effectKind, is_found: true }
    return lookUpAgain(
      { task, context: { now, steps: { sign: 'quote' as const } } },
      { state, note: fault.message, sought },
    )
  }
}

const feeUsd = ({ amount_usd }: SwapAfterData, { units }: Delivered): bigint =>
  toUnits(amount_usd, usdcDecimals) - BigInt(units)

function withdrawalLeg({ route }: Pick<SwapAfterDeps, 'route'>, { units, txHash }: Delivered): JsonObject {
  return legView({
    role: 'withdrawal',
    status: 'completed',
    chain_id: route.chainId,
    token_address: route.token,
    amount: units,
    tx_hash: txHash,
    error: null,
  })
}

export function afterSwap(
  deps: WithdrawEndDeps,
  task: SwapAfterTask,
  { end, now }: { end: SwapEnd; now: Date },
): EndResult<SwapLegData> {
  if (end.end !== 'completed') return withdrawalSwapFailed(deps, task, end)
  const { data } = task
  const received = data.received!
  const { destination } = data.swap!
  const { units, txHash } = swappedOf(end, now)
  return {
    ...end,
    result: {
      amount: units,
      amount_usd: valueUsd(data, units),
      fee_usd: fromUnits(feeUsd(data, received) + toMicros(swapFeesUsd(data)), usdDecimals),
      withdrawn_usd: data.amount_usd,
      chain_id: destination.chain_id,
      token_address: destination.token.address,
      tx_hash: txHash,
      credited_at: now.toISOString(),
      moved_from_spot_usd: data.transfer_usd,
      legs: [
        withdrawalLeg(deps, received),
        legView({
          role: 'swap',
          status: 'completed',
          chain_id: destination.chain_id,
          token_address: destination.token.address,
          amount: units,
          tx_hash: txHash,
          error: null,
        }),
      ],
      remaining: null,
    },
  }
}

/** Returns the value of the arrived units at the price of the quote; without one, the value of the payout. */
function valueUsd({ swap, received }: SwapAfterData, units: string): string {
  const { amount_out: quotedUnits, amount_out_usd: quotedUsd } = swap!.quote
  if (typeof quotedUsd !== 'string' || typeof quotedUnits !== 'string' || quotedUnits === '0')
    return fromUnits(BigInt(received!.units), usdcDecimals)
  return fromUnits(mulDiv(toMicros(quotedUsd), BigInt(units), BigInt(quotedUnits)), usdDecimals)
}

/** Ends a task whose withdrawal was executed and whose swap was not, with the place of the money. */
export function withdrawalSwapFailed(
  deps: WithdrawEndDeps,
  { id: taskId, data }: SwapAfterTask,
  failure: Failure & Partial<Pick<FailedResult<SwapLegData>, 'outcome'>>,
): FailedResult<SwapLegData> {
  const { route, chain, batches } = deps
  const received = data.received!
  const { outcome = 'not_executed', error, result } = failure
  const inWallet = {
    place: 'wallet' as const,
    chain_id: route.chainId,
    token_address: route.token,
    symbol: route.symbol,
    amount: received.units,
    account: data.account,
    tx_hash: received.txHash,
  }
  const found = data.swap && result ? remainingAfter(data, { outcome, result }) : inWallet
  const remaining = found.tx_hash === null ? inWallet : found
  const reason = error.message.replace(/[.\s]+$/, '')
  // A refund can be in a token other than the one that was swapped.
  const what =
    remaining.token_address === route.token
      ? `its ${fromUnits(BigInt(remaining.amount), usdcDecimals)} ${route.symbol} are`
      : 'its money is'
  const where =
    remaining.place === 'wallet'
      ? `in your wallet on ${chain.row.displayName}`
      : 'with the provider of the swap'
  const failedLeg = { role: 'swap', status: 'failed', amount: '0', error: error.message } as const
  return {
    ...failure,
    end: 'failed',
    outcome: 'partial',
    error: {
      ...error,
      message: `${reason}; the withdrawal was executed, and ${what} ${where}`,
    },
    result: {
      amount: '0',
      amount_usd: '0',
      fee_usd: fromUnits(feeUsd(data, received), usdDecimals),
      withdrawn_usd: data.amount_usd,
      chain_id: route.chainId,
      token_address: route.token,
      tx_hash: null,
      credited_at: null,
      moved_from_spot_usd: data.transfer_usd,
      legs: [
        withdrawalLeg(deps, received),
        data.swap
          ? failedSwapLeg(data, { end: 'failed', outcome, error, ...(result && { result }) })
          : legView({ ...failedLeg, chain_id: route.chainId, token_address: route.token, tx_hash: null }),
      ],
      remaining,
    },
    writes: combineWrites(failure.writes, (tx) => batches.releaseGas(tx, taskId)),
  }
}
