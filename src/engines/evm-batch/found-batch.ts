import { sumChanges } from '#kernel/balance-changes.ts'
import { Fault } from '#kernel/fault.ts'
import { addToResult, isUnmarked, type SignContext } from '#kernel/one-effect.ts'
import { pollAgain, reviewPollMs } from '#kernel/poll-again.ts'
import type { JsonObject, StepResultOf, TaskView } from '#kernel/task.ts'
import { recordFoundEffect } from '#store/found-effect.ts'
import type { FoundBatch } from '#upstreams/evm/evm.ts'
import {
  type BatchOptions,
  type BatchPlan,
  type BatchTaskData,
  type ExecutedBatch,
  effectKind,
  type FoundProof,
} from './batch-rules.ts'
import type { EvmPort } from './evm-port.ts'
import type { GasBudget } from './gas-budget.ts'
import { nonceKind } from './sponsor-load.ts'
import { balanceChangesOf } from './tx-views.ts'

/**
 * A batch that the account has run before its task exists, under the same execution id: this database has forgotten it.
 * It is never sent again; its own transaction says what the task executed.
 */

type Found<Data extends BatchTaskData, Proof, Names extends string> = BatchOptions<Data, Proof> & {
  port: EvmPort
  gasBudget: Pick<GasBudget, 'settle'>
  task: TaskView<Data>
  plan: BatchPlan
  context: SignContext<Data, Proof, Names>
}

/** The account numbers the batches of a task: the next one follows those that it has executed on this chain. */
export const executedBefore = (
  { effects = [] }: Partial<Pick<TaskView, 'effects'>>,
  chainId: string,
): number =>
  effects.filter(
    ({ kind, status, intent }) => kind === effectKind && status === 'confirmed' && intent.chainId === chainId,
  ).length

const pollBackoff = { firstMs: 1_000, maxMs: 15_000 }

/** A node that is away proves nothing: the look-up is repeated. The task is marked before, so that nothing ends it. */
export const settleFound = async <Data extends BatchTaskData, Proof, Names extends string>(
  found: Found<Data, Proof, Names>,
): Promise<StepResultOf<Partial<Data>, Names>> => {
  if (isUnmarked(found.task))
    return waiting(found, { state: 'reconciling', note: 'this request was executed before' })
  return settleOnce(found).catch((fault: unknown) => {
    if (fault instanceof Fault) return waiting(found, { state: 'reconciling', note: fault.message })
    throw fault
  })
}

async function settleOnce<Data extends BatchTaskData, Proof, Names extends string>(
  found: Found<Data, Proof, Names>,
): Promise<StepResultOf<Partial<Data>, Names>> {
  const { port, gasBudget, task, plan, context } = found
  const { chain } = port
  const nonce = chain.batchNonce(task.executionId, executedBefore(task, plan.chainId))
  const batch = await chain.findBatch(plan.account, nonce)
  if (!batch) return review(found, 'its transaction was not found')
  const { head, receipts } = await chain.receipts([batch.txHash])
  const receipt = receipts[0]
  const isFinal = receipt && head.number - receipt.block + 1n >= BigInt(chain.row.confirmations)
  if (!isFinal) return waiting(found, { state: 'confirming', note: `${batch.txHash} is not final yet` })
  found.onFinal?.(task)
  const settled = await settledBy(found, { receipt, calls: batch.calls })
  if (!settled) return review(found, `${batch.txHash} is it, and does not prove what the task would do`)
  const { result, data, patch } = settled
  const changed =
    found.balanceChanges?.({ ...task, data }, receipt) ??
    balanceChangesOf(chain, receipt, plan.account, found.tokens ?? [])
  const shown: BatchTaskData = {
    transactions: [...(task.data.transactions ?? []), viewOf(port, batch)],
    balance_changes: sumChanges([...(task.data.balance_changes ?? []), ...changed]),
    note: null,
  }
  return addToResult(result, {
    data: { ...patch, ...shown, ...result.data } as Partial<Data>,
    async writes(tx) {
      await gasBudget.settle(tx, task.id, receipt.feeWei)
      await recordFoundEffect(tx, {
        taskId: task.id,
        step: context.steps.sign,
        kind: effectKind,
        externalId: batch.txHash,
        // No limit has counted it.
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

async function settledBy<Data extends BatchTaskData, Proof, Names extends string>(
  { task, context, ...options }: Found<Data, Proof, Names>,
  batch: ExecutedBatch,
) {
  const planned = async (): Promise<FoundProof<Data, Proof>> => {
    const proof = await options.prove(task, batch.receipt)
    return proof === undefined ? undefined : { proof }
  }
  const proven = options.found ? await options.found(task, batch) : await planned()
  if (!proven) return undefined
  const data: Data = { ...task.data, ...proven.data }
  const settled = await context.settle({ ...task, data }, proven.proof)
  // What the task holds was read from the chain, where it had left already.
  const isReleased = settled.spent !== undefined && !options.spendsLedger
  return { result: isReleased ? { ...settled, spent: 0n } : settled, data, patch: proven.data }
}

const viewOf = ({ chain: { row } }: EvmPort, { txHash, block }: FoundBatch): JsonObject => ({
  chain_id: row.id,
  tx_hash: txHash,
  explorer_url: `${row.explorerUrl}/tx/${txHash}`,
  status: 'finalized',
  block: Number(block),
  nonce: null,
})

const review = <Data extends BatchTaskData, Proof, Names extends string>(
  found: Found<Data, Proof, Names>,
  what: string,
): StepResultOf<Partial<Data>, Names> =>
  waiting(found, { state: 'review', note: `this request was executed before, and ${what}` })

type Waiting = { state: 'confirming' | 'reconciling' | 'review'; note: string }

export function waiting<Data extends BatchTaskData, Proof, Names extends string>(
  { task, context: { now, steps } }: Pick<Found<Data, Proof, Names>, 'task' | 'context'>,
  { state, note }: Waiting,
): StepResultOf<Partial<Data>, Names> {
  const { park, data } = pollAgain(task, steps.sign, pollBackoff)
  const ageMs = state === 'review' ? now.getTime() - task.createdAt.getTime() : 0
  const afterMs = reviewPollMs(ageMs, park.afterMs)
  return ofTask<Data, Names>({
    park: { ...park, afterMs },
    state,
    outcome: 'unknown',
    data: { ...data, note },
  })
}

/** The data of the task has the fields of a batch, which the compiler cannot see in a part of unknown data. */
const ofTask = <Data extends BatchTaskData, Names extends string>(
  result: StepResultOf<BatchTaskData, Names>,
) => result as StepResultOf<Partial<Data>, Names>
