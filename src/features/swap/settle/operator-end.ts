import { claimFound } from '#engines/chain-arrivals/claims.ts'
import type { SwapHooks } from '#features/hooks/swap-hooks.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import { withFill } from '#features/swap/record-swap-cost.ts'
import type { SwapTask, SwapTaskData } from '#features/swap/task-data.ts'
import { balanceChange, sumChanges } from '#kernel/money/balance-changes.ts'
import { combineWrites } from '#kernel/task/effect-steps.ts'
import {
  type FoundPayment,
  isOwnTransaction,
  type OperatorEnd,
  type OperatorFinding,
  type Refusal,
  unusedOption,
} from '#kernel/task/operator-end.ts'
import type { EndResult, JsonObject, Tx } from '#kernel/task/task.ts'
import { foundTerms } from './forgotten-execution-terms.ts'
import { resultOf } from './result.ts'

/**
 * This module ends a swap in review for an operator, as the swap's own step would. The outcome `partial` means that the
 * deposit was not filled in full.
 */

export type OperatorEndDeps = Pick<SwapDeps, 'chains' | 'watchLatePayment'> & {
  hooks: Pick<SwapHooks, 'arm' | 'cancelOn'>
}
type SwapEnding = EndResult & { data?: JsonObject }

export const operatorEndOfSwap =
  (deps: OperatorEndDeps): OperatorEnd =>
  (view, ending, finding) => {
    const terms = termsOf(view as SwapTask, finding)
    const task = withDeposit(withTerms(view as SwapTask, terms), finding)
    const { deposit_tx: deposit, balance_changes } = task.data
    const ofTask: SwapEnding = {
      ...ending,
      data: {
        ...ending.data,
        ...terms,
        ...(deposit !== undefined && { deposit_tx: deposit, balance_changes: balance_changes ?? [] }),
      },
    }
    const unused = unusedOption(finding, [
      'payment',
      'amount-out',
      ...(task.data.sought ? (['amount-in'] as const) : []),
    ])
    if (unused) return unused
    if (finding.outcome === 'executed') return executedEnd(deps, task, { ending: ofTask, finding })
    if (finding.outcome === 'partial' && deposit === undefined)
      return { refusal: 'The task has made no deposit: it was executed, or it was not.' }
    if (finding.outcome === 'not_executed' && deposit !== undefined)
      return {
        refusal: `The deposit ${deposit} was made. Use --outcome partial: a refund or a fill that comes later is added.`,
      }
    if (deposit === undefined) return { ...ofTask, result: { ...ending.result, ...resultOf(task.data) } }
    return partialEnd(deps, task, { ending: ofTask, finding })
  }

/**
 * Returns the terms of an execution that is older than its task, because the database was restored from a backup;
 * undefined if the operator names no transaction.
 */
const termsOf = ({ data }: SwapTask, { inUnits, txHash }: OperatorFinding) =>
  data.sought && txHash !== null ? foundTerms(data, inUnits ?? BigInt(data.amount_in)) : undefined
const withTerms = (task: SwapTask, terms: ReturnType<typeof termsOf>): SwapTask => ({
  ...task,
  data: { ...task.data, ...terms },
})

export function isWholeFill(task: SwapTask, finding: OperatorFinding): boolean {
  const { data } = withTerms(task, termsOf(task, finding))
  return finding.outUnits !== null && finding.outUnits >= BigInt(data.amount_out_min)
}

/** Adds the deposit that the operator saw to a task that never saw it itself. */
function withDeposit(task: SwapTask, { txHash, at }: OperatorFinding): SwapTask {
  const { data } = task
  const { origin, amount_in, balance_changes = [] } = data
  if (txHash === null || data.deposit_tx !== undefined || data.settled_by !== 'status') return task
  if (!isOwnTransaction(task, txHash)) return task
  const spent = balanceChange(origin.chain_id, origin.token, -BigInt(amount_in))
  const made = {
    deposit_tx: txHash,
    deposited_at: at.toISOString(),
    // An execution that is older than its task may have been paid before the task too, so any block may hold the
    // payment.
    ...(data.sought && { heads: { [data.destination.chain_id]: 0, [origin.chain_id]: 0 } }),
  }
  return { ...task, data: { ...data, ...made, balance_changes: sumChanges([...balance_changes, spent]) } }
}

type Ended = { ending: SwapEnding; finding: OperatorFinding }

function executedEnd(
  deps: OperatorEndDeps,
  task: SwapTask,
  { ending, finding: { outUnits, payment, txHash, at } }: Ended,
): EndResult | Refusal {
  const { data } = task
  const { symbol, decimals } = data.destination.token
  if (outUnits === null)
    return {
      refusal: `--amount-out is required: the ${symbol} that arrived, in its smallest units (${decimals} decimals).`,
    }
  // For an execution that is older than its task, the contract has already enforced the minimum that was valid then.
  const isEnforced = data.settled_by === 'receipt' && data.sought
  if (!isEnforced && outUnits < BigInt(data.amount_out_min))
    return { refusal: `Less than the minimum of ${data.amount_out_min} arrived: use --outcome partial.` }
  if (data.settled_by !== 'status') {
    const spent = balanceChange(data.origin.chain_id, data.origin.token, -BigInt(data.amount_in))
    const result = executedResult(deps, data, { outUnits, txHash })
    const changes = { balance_changes: changesWith(data, [spent, arrivedChange(data, outUnits)]) }
    return withFill(deps, task, { ...ending, result, data: { ...ending.data, ...changes } }, at)
  }
  if (data.deposit_tx === undefined)
    return { refusal: 'The deposit of the task is not known: --tx-hash names it, with --outcome partial.' }
  const paid = paidBy(deps, task, payment, at)
  if ('refusal' in paid) return paid
  const result = executedResult(deps, data, { outUnits, txHash: paid.txHash })
  const changes = { balance_changes: changesWith(data, [arrivedChange(data, outUnits)]) }
  const end = { ...ending, result, data: { ...ending.data, ...changes }, writes: paid.writes }
  return withFill(deps, task, end, at)
}

function partialEnd(
  deps: OperatorEndDeps,
  task: SwapTask,
  { ending, finding: { outUnits, payment, at } }: Ended,
): EndResult | Refusal {
  if (!('error' in ending)) return { refusal: 'The task has not failed.' }
  const { data } = task
  const watch = (tx: Tx, paid = { fill: '0', back: '0' }) =>
    deps.watchLatePayment(tx, { ...task, data: { ...data, paid } })
  const words = { code: ending.error.code, details: ending.error.details ?? {} }
  if (outUnits === null) {
    const message = 'An operator determined that nothing came back for what the task has sent'
    return { ...ending, error: { ...words, message }, result: resultOf(data), writes: (tx) => watch(tx) }
  }
  if (outUnits >= BigInt(data.amount_out_min))
    return { refusal: 'What arrived is not below the minimum: use --outcome executed.' }
  const paid = paidBy(deps, task, payment, at)
  if ('refusal' in paid) return paid
  const units = { fill: String(outUnits), back: '0' }
  const changes = { balance_changes: changesWith(data, [arrivedChange(data, outUnits)]) }
  const end: EndResult = {
    ...ending,
    error: { ...words, message: 'An operator determined that less than the minimum arrived' },
    result: executedResult(deps, data, { outUnits, txHash: paid.txHash }),
    data: { ...ending.data, ...changes, paid: units },
    writes: combineWrites(paid.writes, (tx) => watch(tx, units)),
  }
  return withFill(deps, task, end, at)
}

const arrivedChange = ({ destination }: SwapTaskData, units: bigint): JsonObject =>
  balanceChange(destination.chain_id, destination.token, units)

const changesWith = ({ balance_changes = [] }: SwapTaskData, more: readonly JsonObject[]): JsonObject[] =>
  sumChanges([...balance_changes, ...more])

type Claimed = { txHash: string; writes: (tx: Tx) => Promise<void> }

/** Counts the payment for its swap, so that the payment cannot end another swap. */
function paidBy(
  { chains }: OperatorEndDeps,
  { id, data: { destination } }: SwapTask,
  payment: FoundPayment | null,
  at: Date,
): Claimed | Refusal {
  const chain = chains.find((each) => each.id === destination.chain_id)
  if (!chain) return { refusal: `Chain ${destination.chain_id} is unknown.` }
  if (!payment)
    return { refusal: `--payment is required: the transaction that paid, on ${chain.displayName}.` }
  const part = paymentPart(chain, destination, payment)
  if (part === undefined)
    return { refusal: '--payment needs the number of the event that shows the payment: <hash>:<log>.' }
  const { txHash } = payment
  const paid = { chain, account: destination.account, txHash, part }
  return { txHash, writes: (tx) => claimFound(tx, paid, { claimant: id, at }) }
}

/**
 * Returns what identifies the payment within its transaction: the token on Solana, `native` for native coins, otherwise
 * the number of the event; undefined without that number.
 */
export function paymentPart(
  { family }: Pick<OperatorEndDeps['chains'][number], 'family'>,
  { token, is_native: isNative }: SwapTaskData['destination'],
  { logIndex }: FoundPayment,
): string | undefined {
  if (family === 'solana') return token.address
  if (isNative) return 'native'
  return logIndex === null ? undefined : String(logIndex)
}

type Arrived = { outUnits: bigint; txHash: string | null }

function executedResult({ chains }: OperatorEndDeps, data: SwapTaskData, { outUnits, txHash }: Arrived) {
  const explorerUrl = chains.find(({ id }) => id === data.destination.chain_id)?.explorerUrl
  return {
    ...resultOf(data),
    amount_out: String(outUnits),
    tx_hash: txHash,
    explorer_url: explorerUrl && txHash ? `${explorerUrl}/tx/${txHash}` : null,
    ...(data.deposit_tx !== undefined && { deposit_tx_hash: data.deposit_tx }),
  }
}
