import type { SwapHooks } from '#features/hooks/swap-hooks.ts'
import type { EndResult, TaskView } from '#kernel/task.ts'
import type { SwapDeps } from './deps.ts'
import { withFill } from './execution.ts'
import { resultOf } from './result.ts'
import type { SwapTask, SwapTaskData } from './task-data.ts'

/** What an operator found out about a swap in review. `partial`: a deposit that was neither filled nor refunded. */
export type OperatorFinding = {
  outcome: 'executed' | 'partial' | 'not_executed'
  /** What arrived; needed where the swap was executed. */
  outUnits: bigint | null
  txHash: string | null
  at: Date
}
export type OperatorEndDeps = Pick<SwapDeps, 'chains' | 'watchLatePayment'> & {
  hooks: Pick<SwapHooks, 'arm' | 'cancelOn'>
}
/** `ending`: as the operator's command ends every task. Returns the reason where the finding fits no such end. */
export type OperatorEnd = (
  task: TaskView<object>,
  ending: EndResult,
  finding: OperatorFinding,
) => EndResult | { refusal: string }

/** The end of the swap as its own step would have made it. */
export const operatorEndOfSwap =
  (deps: OperatorEndDeps): OperatorEnd =>
  (view, ending, { outcome, outUnits, txHash, at }) => {
    const task = view as SwapTask
    const { data } = task
    const deposit = data.deposit_tx
    if (ending.end === 'completed') {
      if (outUnits === null) {
        const { symbol, decimals } = data.destination.token
        return {
          refusal: `--amount-out is required: the ${symbol} that arrived, in its smallest units (${decimals} decimals).`,
        }
      }
      const result = executedResult(deps, data, { outUnits, txHash })
      return withFill(deps, task, { ...ending, result }, at)
    }
    if (outcome === 'partial' && deposit === undefined)
      return { refusal: 'The task has made no deposit: it was executed, or it was not.' }
    if (outcome === 'not_executed' && deposit !== undefined)
      return {
        refusal: `The deposit ${deposit} was made. Use --outcome partial: a refund or a fill that comes later is added.`,
      }
    const failed = { ...ending, result: { ...ending.result, ...resultOf(data) } }
    if (deposit === undefined) return failed
    return { ...failed, writes: (tx) => deps.watchLatePayment(tx, task) }
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
