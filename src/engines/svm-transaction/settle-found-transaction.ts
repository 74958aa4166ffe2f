import { addToResult, type SignContext } from '#kernel/task/effect-steps.ts'
import { lookUpAgain, proofOf, settleForgotten, wouldEndUnseen } from '#kernel/task/forgotten-execution.ts'
import { transactionView } from '#kernel/task/sponsored-effect.ts'
import type { StepResultOf, TaskView } from '#kernel/task/task.ts'
import { recordFoundEffect } from '#store/record-found-effect.ts'
import type { FoundTransaction } from '#upstreams/solana/execution-reference.ts'
import type { LamportBudget } from './lamport-budget.ts'
import type { SvmPort } from './svm-port.ts'
import { effectKind, nonceKind, type SvmOptions, type SvmPlan, type SvmTaskData } from './transaction-plan.ts'
import { balanceChangesOf } from './transaction-views.ts'

/** A transaction that names the reference of an execution, although its task has not signed any. */

type Found<Data extends SvmTaskData, Proof, Names extends string> = SvmOptions<Data, Proof> & {
  port: SvmPort
  budget: Pick<LamportBudget, 'settle'>
  task: TaskView<Data>
  plan: SvmPlan
  transaction: FoundTransaction
  context: SignContext<Data, Proof, Names>
}

export async function settleFound<Data extends SvmTaskData, Proof, Names extends string>(
  found: Found<Data, Proof, Names>,
): Promise<StepResultOf<Partial<Data>, Names>> {
  const { port, budget, task, plan, transaction, context, tokens = [] } = found
  const { signature, landed } = transaction
  const sought = { chain_id: plan.chainId, kind: effectKind, is_found: true, tx_hash: signature }
  // A task that is marked as looking up cannot be ended by anything else while the transaction is examined.
  if (wouldEndUnseen(task))
    return lookUpAgain(found, { state: 'reconciling', note: 'this request was executed before', sought })
  const landing = { ...port.readLanding(landed, { raw: landed.raw, account: plan.account }), signature }
  found.onFinal?.(task)
  const proven = await proofOf(found, landing, () => found.prove(found.task, landing))
  if (!proven)
    return lookUpAgain(found, {
      state: 'review',
      note: `this request was executed before, and ${signature} does not prove it`,
      sought,
    })
  const result = await settleForgotten(found, proven)
  const shown: SvmTaskData = {
    transactions: [
      ...(task.data.transactions ?? []),
      transactionView(port.chain.row, { txHash: signature, status: 'finalized', block: landing.slot }),
    ],
    balance_changes: balanceChangesOf(port.chain.row, landing, tokens),
    note: null,
    sought: null,
  }
  return addToResult(result, {
    data: { ...proven.data, ...shown, ...result.data } as Partial<Data>,
    async writes(tx) {
      await budget.settle(tx, task.id, landing.sponsorLamports)
      await recordFoundEffect(tx, {
        taskId: task.id,
        step: context.steps.sign,
        kind: effectKind,
        externalId: signature,
        // The dollar value is 0, because no limit of the policy has counted this transaction.
        intent: { chainId: plan.chainId, account: plan.account, usdMicros: '0' },
        nonceSequence: { kind: nonceKind, chain: plan.chainId, signer: plan.account },
        // The wallet's nonce sequence begins at 0, so a negative number was never given out.
        nonce: -landing.slot,
        proof: { tx_hash: signature, slot: String(landing.slot) },
        at: context.now,
      })
    },
  })
}
