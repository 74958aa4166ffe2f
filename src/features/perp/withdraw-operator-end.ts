import { claimFound, countedAlready, venuePayouts } from '#engines/chain-arrivals/claims.ts'
import { claimedTransferKeys, claimTransfer } from '#engines/venue/records/order-store.ts'
import type { SwapTaskData } from '#features/swap/task-data.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { findChain, tokenByRef } from '#kernel/contract/token-ref.ts'
import { sumChanges } from '#kernel/money/balance-changes.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { fromUnits, toUnits, usdcDecimals } from '#kernel/money/money.ts'
import { combineWrites } from '#kernel/task/effect-steps.ts'
import {
  executedEffects,
  isHeldBack,
  isOwnTransaction,
  type OperatorEnd,
  type OperatorFinding,
  type Refusal,
  soughtOf,
  unusedOption,
} from '#kernel/task/operator-end.ts'
import type { EndResult, JsonObject, TaskView, Tx } from '#kernel/task/task.ts'
import { isLive } from '#kernel/task/task-state.ts'
import { query } from '#store/query.ts'
import { adoptedKind, replaceAdopted } from '#store/record-found-effect.ts'
import type { PerpLimits } from './limits.ts'
import { type Delivered, legEnd, swapTaskOf } from './swap-leg.ts'
import { afterSwap, type SwapAfterData, type WithdrawEndDeps, withdrawalSwapFailed } from './withdraw-swap.ts'
import { arrivedView, isNear, isPaid, type Payout } from './withdrawal-payout-search.ts'

/** This module ends a withdrawal on behalf of an operator. Which leg was under way determines where the money is. */

export type WithdrawOperatorDeps = WithdrawEndDeps & {
  payoutChain: Pick<Chain, 'id' | 'family'>
  chains: readonly Chain[]
  limits: Pick<PerpLimits, 'withdrawFeeUsd'>
  swapEnd: OperatorEnd
}
type WithdrawTask = TaskView<SwapAfterData & { payout?: Payout }>
type Ended = { ending: EndResult; finding: OperatorFinding }

export const operatorEndOfWithdraw =
  (deps: WithdrawOperatorDeps): OperatorEnd =>
  (view, ending, finding) => {
    const task = view as WithdrawTask
    const ended = { ending, finding }
    if (finding.outcome === 'not_executed') return unusedOption(finding) ?? ending
    return task.data.received ? endInSwap(deps, task, ended) : endBeforePayout(deps, task, ended)
  }

function endBeforePayout(
  deps: WithdrawOperatorDeps,
  task: WithdrawTask,
  { ending, finding }: Ended,
): EndResult | Refusal {
  const { route } = deps
  const { data } = task
  const { outcome, outUnits, payment, at } = finding
  const unused = unusedOption(finding, ['payment', 'amount-out'])
  if (unused) return unused
  const mayBeTaken = task.effects.some(isLive) && (outcome === 'executed' || isHeldBack(task))
  if (executedEffects(task).length === 0 && !mayBeTaken)
    return { refusal: 'The venue is not known to have taken the withdrawal: it was executed, or it was not.' }
  if (outUnits === null && outcome === 'partial' && !isHeldBack(task)) return notPaid(deps, data, ending)
  if (outUnits === null || payment?.logIndex === undefined || payment.logIndex === null)
    return {
      refusal: `--amount-out is required, the ${route.symbol} that arrived in smallest units, and --payment as <hash>:<log>.`,
    }
  const { txHash, logIndex } = payment
  const asked = toUnits(data.amount_usd, usdcDecimals)
  const isPayout = data.payout ? isPaid(data.payout) : isNear(data, deps.limits)
  if (!isPayout(outUnits))
    return {
      refusal: `--amount-out is another payment: the venue pays out ${data.payout?.paid_units ?? `${asked} units less a fee`}.`,
    }
  const received: Delivered = { units: String(outUnits), txHash, at: at.toISOString() }
  const patch = { ...ending.data, balance_changes: [arrivedView(route, received.units)] }
  const writes = (tx: Tx) => claimPayout(deps, tx, { task, txHash, logIndex, outUnits, at })
  if (data.destination) {
    if (outcome === 'executed')
      return { refusal: 'The swap of the payout has not begun: use --outcome partial.' }
    return inWallet(deps, { ...task, data: { ...data, received } }, { ...ending, data: patch, writes })
  }
  if (outcome === 'partial')
    return { refusal: 'The payout is the end of this withdrawal: use --outcome executed.' }
  return {
    ...ending,
    end: 'completed',
    outcome: 'executed',
    result: {
      ...withdrawnView(deps, data),
      amount: received.units,
      amount_usd: fromUnits(outUnits, usdcDecimals),
      fee_usd: fromUnits(asked - outUnits, usdcDecimals),
      tx_hash: txHash,
      credited_at: received.at,
    },
    data: patch,
    writes,
  }
}

const withdrawnView = ({ route }: WithdrawOperatorDeps, data: SwapAfterData): JsonObject => ({
  amount: '0',
  amount_usd: '0',
  fee_usd: '0',
  withdrawn_usd: data.amount_usd,
  chain_id: route.chainId,
  token_address: route.token,
  tx_hash: null,
  credited_at: null,
  moved_from_spot_usd: data.transfer_usd,
})

function notPaid(deps: WithdrawOperatorDeps, data: SwapAfterData, ending: EndResult): EndResult {
  const message = 'An operator determined that the venue has taken the withdrawal and not paid it out'
  return {
    ...ending,
    end: 'failed',
    outcome: 'partial',
    error: { code: 'ended_by_operator', message },
    result: withdrawnView(deps, data),
  }
}

/** Ends a task whose withdrawal was executed and whose swap was not: the money is in the wallet. */
function inWallet(deps: WithdrawOperatorDeps, task: WithdrawTask, ending: EndResult): EndResult {
  const message = 'An operator ended the task before the swap'
  const failed = withdrawalSwapFailed(deps, task, { error: { code: 'ended_by_operator', message } })
  const data = { ...ending.data, received: task.data.received! }
  return { ...ending, ...failed, data, writes: combineWrites(ending.writes, failed.writes) } as EndResult
}

function endInSwap(
  deps: WithdrawOperatorDeps,
  task: WithdrawTask,
  { ending, finding }: Ended,
): EndResult | Refusal {
  const { swap } = task.data
  if (!swap && soughtOf(task) && finding.txHash !== null)
    return endUnquoted(deps, task, { ending, finding: { ...finding, txHash: finding.txHash } })
  if (!swap) {
    if (finding.outcome === 'executed')
      return { refusal: 'The swap of the payout has not begun: use --outcome partial.' }
    return unusedOption(finding) ?? inWallet(deps, task, ending)
  }
  const isDeposited = swap.deposit_tx !== undefined || isOwnTransaction(task, finding.txHash)
  const outcome = finding.outcome === 'partial' && !isDeposited ? 'not_executed' : finding.outcome
  const ended = deps.swapEnd(swapTaskOf(task), { ...ending, outcome } as EndResult, { ...finding, outcome })
  if ('refusal' in ended) return ended
  const leg = legEnd(task.data, ended)
  const after = { ...task, data: { ...task.data, ...leg.data } }
  const result = afterSwap(deps, after, { end: leg, now: finding.at })
  const data = { ...leg.data, operator: ending.data?.operator ?? null }
  return { ...result, data } as EndResult
}

type Sold = Ended & { finding: { txHash: string } }

/**
 * Ends a task whose swap was executed before the database was restored from a backup, and can no longer be quoted. The
 * operator says what arrived.
 */
function endUnquoted(
  deps: WithdrawOperatorDeps,
  task: WithdrawTask,
  { ending, finding }: Sold,
): EndResult | Refusal {
  const { outcome, txHash } = finding
  const unused = unusedOption(finding, outcome === 'executed' ? ['amount-out'] : [])
  if (unused) return unused
  const swap = unquotedSwap(deps, task.data, txHash)
  if (!swap) return { refusal: `Chain ${task.data.destination!.chain} is unknown.` }
  const sold = { ...task, data: { ...task.data, swap } }
  if (outcome === 'executed') return endInSwap(deps, sold, { ending, finding })
  const message = 'An operator determined that nothing came back for what the task has sent'
  const error = { code: 'ended_by_operator', message }
  const spent = arrivedView(deps.route, `-${swap.amount_in}`)
  const balance_changes = sumChanges([...(task.data.balance_changes ?? []), spent])
  const failed = withdrawalSwapFailed(deps, sold, { outcome: 'partial', error, result: {} })
  return { ...ending, ...failed, data: { ...ending.data, balance_changes } } as EndResult
}

/** Returns the known data of a swap that was never quoted: it sold the payout, whose units are micro-dollars. */
function unquotedSwap(
  { route, chains }: WithdrawOperatorDeps,
  { account, destination, received }: SwapAfterData,
  txHash: string,
): SwapTaskData | undefined {
  const chain = findChain(chains, destination!.chain)
  if (!chain) return undefined
  const named = tokenByRef(chain, destination!.token, 'destination_token')
  const token =
    'token' in named ? named.token : { symbol: '', name: '', decimals: 0, address: named.unlisted }
  const usdc = { symbol: route.symbol, name: route.symbol, decimals: usdcDecimals, address: route.token }
  const { units } = received!
  const known: Partial<SwapTaskData> = {
    origin: { chain_id: route.chainId, token: usdc, is_native: false, account },
    destination: { chain_id: chain.id, token, is_native: 'token' in named && named.isNative, account },
    amount_in: units,
    amount_out_min: '1',
    usd_micros: units,
    settled_by: 'receipt',
    deposit_tx: txHash,
    quote: {},
  }
  return known as SwapTaskData
}

type PaidOut = { task: WithdrawTask; txHash: string; logIndex: number; outUnits: bigint; at: Date }

/** Counts the payout for its withdrawal, as the search for payouts does, so that no other task counts it. */
async function claimPayout(
  { payoutChain }: WithdrawOperatorDeps,
  tx: Tx,
  { task, txHash, logIndex, outUnits, at }: PaidOut,
): Promise<void> {
  const { id, userId, data } = task
  if (isHeldBack(task)) await replaceEqual(tx, task, outUnits)
  const hash = txHash.toLowerCase()
  const key = `arrival:${hash}:${logIndex}`
  const taken = await claimedTransferKeys(tx, [key], id)
  if (taken.size > 0 || !(await claimTransfer(tx, { key, userId, taskId: id, at })))
    throw countedAlready(txHash)
  const paid = { chain: payoutChain, account: data.account, txHash: hash, part: String(logIndex) }
  await claimFound(tx, paid, { claimant: venuePayouts, at })
}

/**
 * Takes the place of the adopted task of this withdrawal, if there is one: the operator's command `time adopt` makes
 * such tasks of executions that a restored database has lost.
 */
async function replaceEqual(tx: Tx, { id, userId, data }: WithdrawTask, outUnits: bigint): Promise<void> {
  const adopted = await query<{ execution_id: string; paid: string; fee: string }>(
    tx,
    `select f.execution_id, f.venue->>'amount_usd' as paid, f.venue->>'fee_usd' as fee from found_execution f
       join task t on t.id = f.task_id and t.kind = $2
       where f.user_id = $1 and f.venue->>'type' = 'withdrawal' order by f.executed_at`,
    [userId, adoptedKind],
  )
  const asked = toUnits(data.amount_usd, usdcDecimals)
  const unitsOf = (usd: string) => toUnits(usd, usdcDecimals)
  const equal = adopted.filter(({ paid, fee }) => unitsOf(paid) + unitsOf(fee) === asked)
  if (equal.length === 0) return
  const own = equal.find(({ paid }) => unitsOf(paid) === outUnits)
  if (!own)
    throw new Fault(
      'conflict',
      `The venue has paid out ${equal.map(({ paid }) => unitsOf(paid)).join(' or ')} units, as it says itself`,
    )
  await replaceAdopted(tx, id, [own.execution_id])
}
