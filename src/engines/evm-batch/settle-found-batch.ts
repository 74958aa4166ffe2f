import { Fault } from '#kernel/contract/fault.ts'
import { sumChanges } from '#kernel/money/balance-changes.ts'
import { addToResult, type SignContext } from '#kernel/task/effect-steps.ts'
import {
  executedBefore,
  lookUpAgain,
  proofOf,
  settleForgotten,
  wouldEndUnseen,
} from '#kernel/task/forgotten-execution.ts'
import { transactionView } from '#kernel/task/sponsored-effect.ts'
import type { StepResultOf, TaskView } from '#kernel/task/task.ts'
import { type ComparedHash, recordFoundEffect } from '#store/record-found-effect.ts'
import {
  type BatchOptions,
  type BatchPlan,
  type BatchTaskData,
  type ExecutedBatch,
  effectKind,
} from './batch-plan.ts'
import type { EvmPort } from './evm-chain-parts.ts'
import { nonceKind } from './sponsor-load.ts'
import { balanceChangesOf } from './tx-views.ts'
import type { GasBudget } from './user-gas-budget.ts'

/**
 * Settles a task whose batch the account had executed before the task existed, because the database lost the earlier
 * task. The transaction of that batch says what was executed.
 */

type Found<Data extends BatchTaskData, Proof, Names extends string> = BatchOptions<Data, Proof> & {
  port: EvmPort
  gasBudget: Pick<GasBudget, 'settle'>
  comparedHash: ComparedHash
  task: TaskView<Data>
  plan: BatchPlan
  context: SignContext<Data, Proof, Names>
}

/** Marks a batch as found: the account's own nonce counter on the chain includes it, and the database does not. */
const foundOnChain = ({ chainId }: BatchPlan) => ({ chain_id: chainId, kind: effectKind, is_found: true })

/**
 * Settles a batch that was found on the chain. If a node does not answer, nothing is proven: the task, which is marked
 * as found, looks the batch up again later.
 */
export async function settleFound<Data extends BatchTaskData, Proof, Names extends string>(
  found: Found<Data, Proof, Names>,
): Promise<StepResultOf<Partial<Data>, Names>> {
  const sought = foundOnChain(found.plan)
  const note = 'this request was executed before'
  if (wouldEndUnseen(found.task)) return lookUpAgain(found, { state: 'reconciling', note, sought })
  return settleOnce(found).catch((fault: unknown) => {
    if (fault instanceof Fault)
      return lookUpAgain(found, { state: 'reconciling', note: fault.message, sought })
    throw fault
  })
}

async function settleOnce<Data extends BatchTaskData, Proof, Names extends string>(
  found: Found<Data, Proof, Names>,
): Promise<StepResultOf<Partial<Data>, Names>> {
  const { port, gasBudget, task, plan, context } = found
  const { chain } = port
  const { executionId } = task
  const { chainId, account } = plan
  const sequence = executedBefore(task, { kind: effectKind, chainId })
  const nonce = chain.batchNonce(executionId, sequence)
  const batch = await chain.findBatch(
    account,
    nonce,
    await found.comparedHash({ chainId, executionId, sequence }),
  )
  const sought = foundOnChain(plan)
  const again = (state: 'confirming' | 'review', note: string) =>
    lookUpAgain(found, { state, note, sought: batch ? { ...sought, tx_hash: batch.txHash } : sought })
  if (!batch) return again('review', 'this request was executed before, and its transaction was not found')
  const { head, receipts } = await chain.receipts([batch.txHash])
  const receipt = receipts[0]
  const isFinal = receipt && head.number - receipt.block + 1n >= BigInt(chain.row.confirmations)
  if (!isFinal) return again('confirming', `${batch.txHash} is not final yet`)
  found.onFinal?.(task)
  const proven = await proofOf(found, { receipt, calls: batch.calls }, ({ receipt }) =>
    found.prove(task, receipt),
  )
  if (!proven)
    return again(
      'review',
      `this request was executed before, and ${batch.txHash} is it, and does not prove what the task would do`,
    )
  const result = await settleForgotten(found, proven)
  const changed =
    found.balanceChanges?.({ ...task, data: { ...task.data, ...proven.data } }, receipt) ??
    balanceChangesOf(chain, receipt, plan.account, found.tokens ?? [])
  const shown: BatchTaskData = {
    transactions: [
      ...(task.data.transactions ?? []),
      transactionView(chain.row, { txHash: batch.txHash, status: 'finalized', block: batch.block }),
    ],
    balance_changes: sumChanges([...(task.data.balance_changes ?? []), ...changed]),
    note: null,
    sought: null,
  }
  return addToResult(result, {
    data: { ...proven.data, ...shown, ...result.data } as Partial<Data>,
    async writes(tx) {
      await gasBudget.settle(tx, task.id, receipt.feeWei)
      await recordFoundEffect(tx, {
        taskId: task.id,
        step: context.steps.sign,
        kind: effectKind,
        externalId: batch.txHash,
        // The dollar value is 0, because no limit of the policy has counted this batch.
        intent: {
          chainId: plan.chainId,
          batch: { account: plan.account, nonce: String(nonce) },
          usdMicros: '0',
        },
        nonceSequence: { kind: nonceKind, chain: plan.chainId, signer: batch.from },
        nonce: batch.nonce,
        proof: { tx_hash: batch.txHash, block: String(receipt.block) },
        at: context.now,
      })
    },
  })
}

export type ExecutedOrder = { chainId: string; account: string; executionId: string }

/**
 * Returns the batch of an order that was executed before the order's present task existed, or undefined if there is
 * none. Throws a fault with the extra `executed` if it was executed but no node shows its transaction.
 */
export async function executedBatch(
  { chain, comparedHash }: EvmPort & { comparedHash: ComparedHash },
  { chainId, account, executionId }: ExecutedOrder,
): Promise<ExecutedBatch | undefined> {
  const { executedTimes } = await chain.account(account, executionId)
  if (executedTimes === 0n) return undefined
  const listed = await comparedHash({ chainId, executionId, sequence: 0 })
  const batch = await chain.findBatch(account, chain.batchNonce(executionId, 0), listed)
  const [receipt] = batch ? (await chain.receipts([batch.txHash])).receipts : []
  if (!batch || !receipt)
    throw new Fault('unavailable', 'The transaction of the batch was not found', {
      extras: { executed: true },
    })
  return { receipt, calls: batch.calls }
}
