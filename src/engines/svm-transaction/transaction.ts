import { LRUCache } from 'lru-cache'
import type { NonceSequences } from '#durable/nonces.ts'
import { Fault } from '#kernel/fault.ts'
import { canonicalJson } from '#kernel/json.ts'
import type { EffectContext, EffectDriver } from '#kernel/one-effect.ts'
import type { Policy, SvmIntent, SvmSigner } from '#kernel/signer.ts'
import type {
  GasCharge,
  Intent,
  JsonObject,
  NonceSequence,
  SignedEffect,
  StepResultOf,
  TaskView,
} from '#kernel/task.ts'
import type { Draft } from '#upstreams/solana/draft.ts'
import { type ConfirmDeps, confirmTransaction } from './confirm.ts'
import type { LamportBudget } from './lamport-budget.ts'
import type { SvmPort } from './svm-port.ts'
import { effectKind, type SvmOptions, type SvmPlan, type SvmTaskData } from './transaction-rules.ts'

/** Instructions of the user's wallet in one transaction that the sponsor pays for, as the driver of an effect. */

export type SvmTransactions = {
  /** Throws before a task exists where the chain is not served or no sponsor can pay. */
  ready(chainId: string, options?: { fullExit: boolean }): Promise<void>
  /** Composes and simulates the transaction of an admission, and says what it charges the user's budget. */
  trial(userId: string, plan: SvmPlan): Promise<SvmTrial>
  /** The driver of an effect; its steps may have any names. */
  driver<Data extends SvmTaskData, Proof, Names extends string = 'sign' | 'confirm'>(
    options: SvmOptions<Data, Proof>,
  ): EffectDriver<Data, SvmPlan, Proof, Names>
}
export type SvmTrial =
  | { ok: true; feeLamports: bigint; rentLamports: bigint; charge: GasCharge }
  | { ok: false; reason: string }

type SvmTransactionsDeps = {
  budget: LamportBudget
  ports: ReadonlyMap<string, SvmPort>
  policy: Pick<Policy, 'authorize' | 'release'>
  signer: SvmSigner
  nonces: Pick<NonceSequences, 'ensure'>
}

const nonceKind = 'svm'
const openedMax = 10_000

export function svmTransactions(deps: SvmTransactionsDeps): SvmTransactions {
  const { budget, ports, policy } = deps
  const portOf = (chainId: string): SvmPort => {
    const port = ports.get(chainId)
    if (port) return port
    throw new Fault('unavailable', `Sponsored transactions are not available on chain ${chainId}`)
  }
  const openSequence = openedSequences(deps)
  const confirmDeps: ConfirmDeps = { portOf, budget, policy }

  /** Two equal orders have to differ, or they were one transaction: `id` is that of the task and its signature. */
  const draft = async (plan: SvmPlan, id: string) => {
    const port = portOf(plan.chainId)
    const feePayer = await port.sponsor.pick({ fullExit: plan.fullExit ?? false })
    return { port, feePayer, result: await port.draft({ ...plan, feePayer, id }) }
  }

  const sign = async <Names extends string>(
    task: TaskView<SvmTaskData>,
    plan: SvmPlan,
    { steps }: EffectContext<Names>,
  ): Promise<StepResultOf<never, Names>> => {
    const own = task.effects.filter(({ kind, step }) => kind === effectKind && step === steps.sign)
    const live = own.find(({ status }) => status !== 'dropped')
    if (live) throw new Error(`task ${task.id} signs again while effect ${live.id} may land`)
    const { port, feePayer, result } = await draft(plan, `${task.id} ${steps.sign} ${own.length}`)
    if (!result.ok) return notExecuted(port, result.reason)
    const nonceSequence = await openSequence(plan)
    const intent = intentOf(task, plan, { feePayer, draft: result.draft })
    const build: Intent['build'] = async (tx) => {
      const receipt = await policy.authorize(tx, intent)
      const userSignature = await deps.signer.signMessage(intent, receipt)
      const { signature, raw } = port.sponsor.sign({ intent, receipt, userSignature })
      return async (nonce): Promise<SignedEffect> => ({
        effect: {
          kind: effectKind,
          externalId: signature,
          intent: JSON.parse(canonicalJson(intent)) as JsonObject,
          signed: { signature, slot: String(result.draft.slot) },
          policyReceipt: receipt.id,
        },
        txAttempt: { externalId: signature, raw, nonce },
      })
    }
    return { sign: { nonceSequence, build }, next: steps.confirm, state: 'signed' }
  }

  return {
    ready: async (chainId, options = { fullExit: false }) => portOf(chainId).sponsor.ready(options),
    async trial(userId, plan) {
      const { result } = await draft(plan, `${userId} trial`)
      if (!result.ok) return { ok: false, reason: result.reason }
      const { feeLamports, rentLamports } = result.draft
      const charge = budget.chargeOf({
        userId,
        chainId: plan.chainId,
        lamports: feeLamports + rentLamports,
        fullExit: plan.fullExit ?? false,
      })
      return { ok: true, feeLamports, rentLamports, charge }
    },
    driver: (options) => ({
      sign,
      confirm: (task, settle, context) =>
        confirmTransaction(confirmDeps, { ...options, task, settle }, context),
    }),
  }
}

/**
 * Solana has no nonce: a signature is unique by its bytes. A number per wallet, taken with the signature, orders the
 * signatures of a user without a row that all users share.
 */
function openedSequences({ nonces }: SvmTransactionsDeps) {
  const opened = new LRUCache<string, true>({ max: openedMax })
  return async ({ chainId, account }: SvmPlan): Promise<NonceSequence> => {
    const nonceSequence = { kind: nonceKind, chain: chainId, signer: account }
    const key = `${chainId}:${account}`
    if (!opened.has(key)) await nonces.ensure(nonceSequence, 0n)
    opened.set(key, true)
    return nonceSequence
  }
}

const notExecuted = ({ chain }: SvmPort, reason: string) =>
  ({
    end: 'failed',
    outcome: 'not_executed',
    error: {
      code: 'tx_failed',
      message: `The transaction would fail: ${reason}`,
      retryable: false,
      upstream: chain.row.displayName,
    },
  }) as const

function intentOf(
  { id: taskId, userId }: Pick<TaskView, 'id' | 'userId'>,
  plan: SvmPlan,
  { feePayer, draft }: { feePayer: string; draft: Draft },
): SvmIntent {
  const { chainId, account, operation, spends, tokens, recipients, usdMicros, exit } = plan
  const { message, lastValidBlockHeight } = draft
  return {
    type: 'svm_transaction',
    userId,
    taskId,
    operation,
    chainId,
    tokens,
    recipients,
    usdMicros,
    exit,
    account,
    feePayer,
    spends,
    message,
    lastValidBlockHeight,
  }
}
