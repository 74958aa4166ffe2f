import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import { combineWrites } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { FailedResult, JsonObject, StepContext, StepResultOf, TaskView } from '#kernel/task/task.ts'
import { depositOf, type FundDeps, type FundTaskData, fundDeposit, minFundUnits } from './fund-admission.ts'
import {
  ageOf,
  failedSwapLeg,
  isExecutedBefore,
  legView,
  mayPass,
  type RemainingView,
  remainingAfter,
  type SwapEnd,
  type SwapLegStep,
  secondLegMs,
  settleInStep,
  swapLegSteps,
  swappedOf,
  swapStepNames,
} from './swap-leg.ts'

/** This module runs the swap before a deposit, and says where the money is if the deposit cannot follow it. */

export type FundStep = SwapLegStep | 'deposit' | 'sign' | 'confirm' | 'credit' | 'approve' | 'approved'
export type FundTask = TaskView<FundTaskData>
type Result = StepResultOf<Partial<FundTaskData>, FundStep>
type Step = (task: FundTask, context: StepContext) => Promise<Result>
type Failure = { code: string; message: string; retryable?: boolean; upstream?: string }

export type FundEndDeps = Pick<FundDeps, 'route'> & {
  chain: { row: Pick<FundDeps['chain']['row'], 'displayName'> }
  batches: Pick<FundDeps['batches'], 'releaseGas'>
}
type Route = Pick<FundDeps, 'route'>

const pollBackoff = { firstMs: 300, maxMs: 5_000 }

export const depositHold = (taskId: string): string => `${taskId}:deposit`

export const notCredited = (
  { route }: Route,
  legs: JsonObject[],
  remaining: RemainingView | null,
): JsonObject => ({
  amount: '0',
  amount_usd: '0',
  fee_usd: '0',
  chain_id: route.chainId,
  token_address: route.token,
  tx_hash: null,
  credited_at: null,
  legs,
  remaining,
})

export const swapBeforeDepositSteps = (deps: FundDeps): Record<SwapLegStep | 'deposit', Step> => ({
  ...swapLegSteps<FundTaskData, FundStep>(deps.swaps, {
    onEnd: (task, end, now) => afterSwap(deps, task, { end, now }),
    onRefused: (task, { code, message, extras }) =>
      fundingSwapFailed(deps, task, {
        end: 'failed',
        outcome: 'not_executed',
        error: { code, message, ...(extras && { details: extras as JsonObject }) },
      }),
  }),
  deposit: (task, context) => prepareDeposit(deps, task, context),
})

/** Starts the deposit after a completed swap, or ends the task after a failed one. */
function afterSwap(deps: FundDeps, task: FundTask, { end, now }: { end: SwapEnd; now: Date }): Result {
  if (end.end !== 'completed') return fundingSwapFailed(deps, task, end)
  const { end: _end, outcome: _outcome, result: _result, ...committed } = end
  return {
    ...committed,
    next: 'deposit',
    state: 'settling',
    data: {
      ...committed.data,
      polls: 0,
      swapped: swappedOf(end, now),
      progress: { step: 2, of: 2, text: 'Deposit at the venue' },
    },
  }
}

export const fundingSwapFailed = <Patch>(
  deps: Route,
  { data }: FundTask,
  end: FailedResult<Patch>,
): FailedResult<Patch> => ({
  ...end,
  result: notCredited(
    deps,
    [failedSwapLeg(data, end), depositLeg(deps, { status: 'not_started' })],
    remainingAfter(data, end),
  ),
})

type DepositLeg = {
  status: 'completed' | 'failed' | 'not_started'
  amount?: string
  txHash?: string | undefined
  error?: string
}

export const depositLeg = ({ route }: Route, { status, amount, txHash, error }: DepositLeg): JsonObject =>
  legView({
    role: 'deposit',
    status,
    chain_id: route.chainId,
    token_address: route.token,
    amount: amount ?? '0',
    tx_hash: txHash ?? null,
    error: error ?? null,
  })

/** Shows an executed swap as a leg of the funding. */
export function swapLeg({ route }: Route, { swapped }: FundTaskData): JsonObject {
  return legView({
    role: 'swap',
    status: 'completed',
    chain_id: route.chainId,
    token_address: route.token,
    amount: swapped!.units,
    tx_hash: swapped!.txHash,
    error: null,
  })
}

export const creditedLegs = (deps: Route, data: FundTaskData): JsonObject[] => [
  swapLeg(deps, data),
  depositLeg(deps, { status: 'completed', amount: data.amount_units, txHash: data.tx_hash }),
]

async function prepareDeposit(deps: FundDeps, task: FundTask, { now }: StepContext): Promise<Result> {
  const { id: taskId, userId, data } = task
  const amountUnits = BigInt(data.swapped!.units)
  if (await isExecutedBefore({ chain: deps.chain, chainId: deps.route.chainId }, task))
    return settleInStep('sign', {
      amount_units: String(amountUnits),
      since_ms: Date.parse(data.swapped!.at),
      is_deposited: true,
      polls: 0,
    })
  const ageMs = ageOf(data.swapped!, now)
  if (amountUnits < minFundUnits(deps.limits))
    return depositFailed(deps, task, {
      code: 'slippage',
      message: 'The swap brought less than the bridge credits',
    })
  if (ageMs > secondLegMs)
    return depositFailed(deps, task, {
      code: 'expired',
      message: 'The deposit could not be prepared in time',
    })
  const refused = (fault: Fault): Result =>
    mayPass(fault, ageMs)
      ? { ...pollAgain(task, 'deposit', pollBackoff), state: 'waiting' }
      : depositFailed(deps, task, fault)
  try {
    const deposit = depositOf(deps, { userId, amountUnits, sourceToken: data.source_token })
    const funds = await fundDeposit(deps, deposit)
    const swapEffect = task.effects.findLast(
      ({ step, status }) => step === swapStepNames.sign && status === 'confirmed',
    )
    return {
      next: 'sign',
      state: 'held',
      data: { ...funds.data, is_deposited: false },
      async writes(tx) {
        // The deposit counts the same money against the limits, so what the swap has counted is released.
        if (swapEffect) await deps.policy.release(tx, { userId, taskId, intent: swapEffect.intent })
        await deps.reserve(tx, task, { ...funds.spend, holdKey: depositHold(taskId) }, now)
      },
      onWritesRefused: refused,
    }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return refused(fault)
  }
}

/** Ends a task whose swap was executed and whose deposit was not: the money is in the wallet. */
export function depositFailed(
  deps: FundEndDeps,
  { id: taskId, data }: FundTask,
  { code, message, retryable = false, upstream }: Failure,
): FailedResult<Record<never, never>> {
  const { route, chain, batches } = deps
  const { units, txHash } = data.swapped!
  const reason = message.replace(/[.\s]+$/, '')
  return {
    end: 'failed',
    outcome: 'partial',
    error: {
      code,
      message: `${reason}; the swap was executed, and its ${fromUnits(BigInt(units), usdcDecimals)} ${route.symbol} are in your wallet on ${chain.row.displayName}`,
      retryable,
      ...(upstream !== undefined && { upstream }),
    },
    result: notCredited(deps, [swapLeg(deps, data), depositLeg(deps, { status: 'failed', error: message })], {
      place: 'wallet',
      chain_id: route.chainId,
      token_address: route.token,
      symbol: route.symbol,
      amount: units,
      account: data.account,
      tx_hash: txHash,
    }),
    writes: (tx) => batches.releaseGas(tx, taskId),
  }
}

/** Wraps a step of the deposit: if the swap was executed, a failed deposit ends the task as partial. */
export const afterSwapStep =
  (deps: FundDeps, step: Step): Step =>
  async (task, context) => {
    const { swapped, is_deposited: isDeposited } = task.data
    if (!swapped) return step(task, context)
    const result = await step(task, context).catch((fault: unknown) => {
      if (fault instanceof Fault && !isDeposited && ageOf(swapped, context.now) > secondLegMs)
        return depositFailed(deps, task, fault)
      throw fault
    })
    // The step asked another node, which does not know the deposit, so the deposit is prepared like a new one.
    if (isDeposited && ('sign' in result || 'end' in result)) return { next: 'deposit', state: 'settling' }
    if ('sign' in result)
      return { ...result, sign: { ...result.sign, onRefused: (fault) => depositFailed(deps, task, fault) } }
    if (!('end' in result) || result.end === 'completed' || result.outcome === 'partial') return result
    const failed = depositFailed(deps, task, result.error)
    return { ...result, ...failed, writes: combineWrites(result.writes, failed.writes) }
  }
