import { addToResult, isUnmarked, type SignContext } from '#kernel/one-effect.ts'
import { pollAgain, reviewPollMs } from '#kernel/poll-again.ts'
import type { StepResultOf, TaskView } from '#kernel/task.ts'
import { recordFoundEffect } from '#store/found-effect.ts'
import type { FoundTransaction } from '#upstreams/solana/reference.ts'
import type { LamportBudget } from './lamport-budget.ts'
import type { SvmPort } from './svm-port.ts'
import {
  effectKind,
  type FoundLanding,
  nonceKind,
  type ProvenLanding,
  type SvmOptions,
  type SvmPlan,
  type SvmTaskData,
} from './transaction-rules.ts'
import { balanceChangesOf } from './transaction-views.ts'

/**
 * A transaction that names the reference of an execution before its task has signed anything: this database has forgotten
 * it. Nothing is signed again; its own record says what the task executed.
 */

type Found<Data extends SvmTaskData, Proof, Names extends string> = SvmOptions<Data, Proof> & {
  port: SvmPort
  budget: Pick<LamportBudget, 'settle'>
  task: TaskView<Data>
  plan: SvmPlan
  transaction: FoundTransaction
  context: SignContext<Data, Proof, Names>
}

const pollBackoff = { firstMs: 1_000, maxMs: 15_000 }

export async function settleFound<Data extends SvmTaskData, Proof, Names extends string>(
  found: Found<Data, Proof, Names>,
): Promise<StepResultOf<Partial<Data>, Names>> {
  const { port, budget, task, plan, transaction, context, tokens = [] } = found
  const { signature, landed } = transaction
  // Marked, the task is ended by nothing else while this is looked into.
  if (isUnmarked(task)) return waiting(found, 'reconciling', 'this request was executed before')
  const landing = { ...port.readLanding(landed, { raw: landed.raw, account: plan.account }), signature }
  found.onFinal?.(task)
  const proven = await proofOf(found, landing)
  if (!proven)
    return waiting(found, 'review', `this request was executed before, and ${signature} does not prove it`)
  const settled = await context.settle({ ...task, data: { ...task.data, ...proven.data } }, proven.proof)
  const { id, explorerUrl } = port.chain.row
  const shown: SvmTaskData = {
    transactions: [
      ...(task.data.transactions ?? []),
      {
        chain_id: id,
        tx_hash: signature,
        explorer_url: `${explorerUrl}/tx/${signature}`,
        status: 'finalized',
        block: Number(landing.slot),
        nonce: null,
      },
    ],
    balance_changes: balanceChangesOf(port.chain.row, landing, tokens),
    note: null,
  }
  // What the task holds was read from the chain, where it had left already.
  const result = settled.spent === undefined ? settled : { ...settled, spent: 0n }
  return addToResult(result, {
    data: { ...proven.data, ...shown, ...settled.data } as Partial<Data>,
    async writes(tx) {
      await budget.settle(tx, task.id, landing.sponsorLamports)
      await recordFoundEffect(tx, {
        taskId: task.id,
        step: context.steps.sign,
        kind: effectKind,
        externalId: signature,
        // No limit has counted it.
        intent: { chainId: plan.chainId, account: plan.account, usdMicros: '0' },
        nonceSequence: { kind: nonceKind, chain: plan.chainId, signer: plan.account },
        // Below every number of the wallet: the sequence has given this one to nothing.
        nonce: -landing.slot,
        proof: { tx_hash: signature, slot: String(landing.slot) },
        at: context.now,
      })
    },
  })
}

async function proofOf<Data extends SvmTaskData, Proof, Names extends string>(
  { task, prove, found }: Found<Data, Proof, Names>,
  landing: ProvenLanding,
): Promise<FoundLanding<Data, Proof>> {
  if (found) return found(task, landing)
  const proof = prove(task, landing)
  return proof === undefined ? undefined : { proof }
}

type Waiting<Data, Proof, Names extends string> = {
  task: TaskView<Data>
  context: SignContext<Data, Proof, Names>
}

/** A look-up that failed, or found what it cannot read, is repeated: until then nothing is signed. */
export function waiting<Data extends SvmTaskData, Proof, Names extends string>(
  { task, context: { now, steps } }: Waiting<Data, Proof, Names>,
  state: 'reconciling' | 'review',
  note: string,
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

/** The data of the task has the fields of a transaction, which the compiler cannot see in a part of unknown data. */
const ofTask = <Data extends SvmTaskData, Names extends string>(result: StepResultOf<SvmTaskData, Names>) =>
  result as StepResultOf<Partial<Data>, Names>
