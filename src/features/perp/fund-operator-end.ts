import type { isWholeFill } from '#features/swap/settle/operator-end.ts'
import { balanceChange, sumChanges } from '#kernel/money/balance-changes.ts'
import { usdcDecimals } from '#kernel/money/money.ts'
import { combineWrites } from '#kernel/task/effect-steps.ts'
import {
  isOwnTransaction,
  type OperatorEnd,
  type OperatorFinding,
  type Refusal,
  unusedOption,
} from '#kernel/task/operator-end.ts'
import type { EndResult, FailedResult } from '#kernel/task/task.ts'
import { creditedEnd } from './fund.ts'
import type { FundTaskData } from './fund-admission.ts'
import { approvalWrites, type SetupOperatorDeps } from './setup-operator-end.ts'
import {
  depositFailed,
  depositLeg,
  type FundEndDeps,
  type FundTask,
  fundingSwapFailed,
  notCredited,
  swapLeg,
} from './swap-before-deposit.ts'
import { legEnd, swappedOf, swapTaskOf } from './swap-leg.ts'

/** This module ends a funding for an operator. The leg that was under way says where the money is. */

export type FundOperatorDeps = FundEndDeps &
  SetupOperatorDeps & {
    swapEnd: OperatorEnd
    isWholeFill: typeof isWholeFill
  }
type Ended = { ending: EndResult; finding: OperatorFinding }

export const operatorEndOfFund =
  (deps: FundOperatorDeps): OperatorEnd =>
  (view, ending, finding) => {
    const task = view as FundTask
    const isSwapOpen = task.data.swap !== undefined && task.data.swapped === undefined
    return isSwapOpen
      ? endInSwap(deps, task, { ending, finding })
      : endInDeposit(deps, task, { ending, finding })
  }

/** Ends a funding whose deposit has not begun: the output of the swap is in the wallet. */
function endInSwap(deps: FundOperatorDeps, task: FundTask, { ending, finding }: Ended): EndResult | Refusal {
  const { outcome, at } = finding
  if (outcome === 'executed')
    return {
      refusal:
        'The deposit has not begun: use --outcome partial, with --amount-out and --payment where the swap was filled.',
    }
  const isWhole = deps.isWholeFill(swapTaskOf(task), finding)
  const ended = deps.swapEnd(
    swapTaskOf(task),
    isWhole ? { ...ending, end: 'completed', outcome: 'executed', result: null } : ending,
    isWhole ? { ...finding, outcome: 'executed' } : finding,
  )
  if ('refusal' in ended) return ended
  const leg = legEnd(task.data, ended)
  const data = { ...task.data, ...leg.data } as FundTaskData
  const proof = { operator: ending.data?.operator ?? null }
  if (!isWhole) {
    const failed = fundingSwapFailed(deps, { ...task, data }, leg as FailedResult)
    return { ...failed, data: { ...leg.data, ...proof } } as EndResult
  }
  const swapped = swappedOf(leg, at)
  const failed = depositFailed(
    deps,
    { ...task, data: { ...data, swapped } },
    { code: 'ended_by_operator', message: 'An operator ended the task before the deposit' },
  )
  return {
    ...ending,
    ...failed,
    data: { ...leg.data, ...proof, swapped },
    writes: combineWrites(ended.writes, failed.writes),
  } as EndResult
}

function endInDeposit(
  deps: FundOperatorDeps,
  task: FundTask,
  { ending, finding }: Ended,
): EndResult | Refusal {
  const { data } = task
  const { route } = deps
  const { outcome, at } = finding
  const unused = unusedOption(finding)
  if (unused) return unused
  if (outcome === 'not_executed') return ending
  const isSeen = data.tx_hash === undefined && isOwnTransaction(task, finding.txHash)
  const txHash = isSeen ? finding.txHash! : data.tx_hash
  if (txHash === undefined) {
    if (outcome === 'partial' && data.swapped) {
      const message = 'An operator determined that the deposit was not made'
      const failed = depositFailed(deps, task, { code: 'ended_by_operator', message })
      return { ...ending, ...failed } as EndResult
    }
    return { refusal: 'The task has made no deposit at the venue: --tx-hash names it where it has.' }
  }
  const spent = balanceChange(
    route.chainId,
    { address: route.token, symbol: route.symbol, decimals: usdcDecimals },
    -BigInt(data.amount_units),
  )
  const patch = {
    ...ending.data,
    tx_hash: txHash,
    ...(isSeen && { balance_changes: sumChanges([...(data.balance_changes ?? []), spent]) }),
  }
  if (outcome === 'executed') {
    const credited_at = data.credited_at ?? at.toISOString()
    const credited = creditedEnd(deps, { ...data, tx_hash: txHash, credited_at })
    const writes = approvalWrites(deps, task, at)
    return { ...ending, ...credited, data: { ...patch, credited_at }, ...(writes && { writes }) }
  }
  if (data.credited_at !== undefined)
    return { refusal: 'The venue has credited the deposit: use --outcome executed.' }
  const message = `An operator determined that the venue has not credited the deposit ${txHash}`
  const legs = data.swapped
    ? [swapLeg(deps, data), depositLeg(deps, { status: 'failed', txHash, error: message })]
    : []
  const { legs: shown, ...result } = notCredited(deps, legs, null)
  return {
    ...ending,
    end: 'failed',
    outcome: 'partial',
    error: { code: 'ended_by_operator', message },
    result: { ...result, tx_hash: txHash, ...(data.swapped && { legs: shown! }) },
    data: patch,
  }
}
