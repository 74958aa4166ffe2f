import { Fault } from '#kernel/contract/fault.ts'
import { addToResult, type EffectNames, notExecuted, type Settled } from '#kernel/task/effect-steps.ts'
import { outsideId } from '#kernel/task/forgotten-execution.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import type { Policy } from '#kernel/task/signer.ts'
import {
  pollBackoff,
  reviewResult,
  silentResult,
  updateOf,
  watchedBackoff,
} from '#kernel/task/sponsored-effect.ts'
import type {
  Effect,
  EndResult,
  JsonObject,
  StepContext,
  StepResultOf,
  TaskView,
  Tx,
} from '#kernel/task/task.ts'
import type { Landing } from '#upstreams/solana/landed-balance-changes.ts'
import { attemptOf, awaitLanding, isFinal, type LandingState, resendMs } from './await-landing.ts'
import { type ExpiryFinding, findExpiry } from './expiry.ts'
import type { LamportBudget } from './lamport-budget.ts'
import type { SvmPort } from './svm-port.ts'
import { effectKind, type SvmOptions, type SvmStepResult, type SvmTaskData } from './transaction-plan.ts'
import { balanceChangesOf, type ShownStatus, transactionsOf } from './transaction-views.ts'

/** The most signatures of one task; all of them but the last can never land. */
const signaturesMax = 3

export type ConfirmDeps = {
  portOf: (chainId: string) => SvmPort
  budget: Pick<LamportBudget, 'settle'>
  policy: Pick<Policy, 'release'>
}
type Result<Data, Names extends string> = StepResultOf<Partial<Data>, Names>
export type Settling<Data extends SvmTaskData, Proof, Names extends string> = SvmOptions<Data, Proof> & {
  task: TaskView<Data>
  settle: (proof: Proof) => Promise<Settled<Data, Names>>
}
export type ConfirmContext<Names extends string> = ConfirmDeps & {
  task: TaskView<SvmTaskData>
  effect: Effect
  port: SvmPort
  steps: EffectNames<Names>
  now: Date
}

export async function confirmTransaction<Data extends SvmTaskData, Proof, Names extends string>(
  deps: ConfirmDeps,
  settling: Settling<Data, Proof, Names>,
  { now, signal, stopping, steps }: StepContext & { steps: EffectNames<Names> },
): Promise<Result<Data, Names>> {
  const { task, signsAgain = true } = settling
  const effect = task.effects.findLast((each) => each.kind === effectKind && each.step === steps.sign)
  if (!effect) throw new Error(`task ${task.id} confirms a transaction that was never stored`)
  const port = deps.portOf(String(effect.intent.chainId))
  const context: ConfirmContext<Names> = { ...deps, task, effect, port, steps, now }
  port.watcher.forget(task.id)
  try {
    const found = await awaitLanding(effect, port, AbortSignal.any([signal, stopping]))
    const finding = found.reading.status ? undefined : await findExpiry(context, found.reading)
    // Signing again could move the money twice, so an operator decides, or a node that finds the transaction does.
    if (finding && 'unprovable' in finding) return ofTask(reviewResult(context))
    if (finding && !('reading' in finding)) return ofTask(expire(context, finding, { signsAgain }))
    const state = { ...found, ...finding }
    if (isFinal(port, state.reading.status)) return await resolve(context, settling, state)
    return ofTask(waitingResult(context, state))
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return ofTask(silentResult(context))
  }
}

/**
 * Casts a result to the type of the task's data: the compiler cannot see that a part of the unknown type `Data` has the
 * fields of a transaction.
 */
const ofTask = <Data extends SvmTaskData, Names extends string>(result: StepResultOf<SvmTaskData, Names>) =>
  result as Result<Data, Names>

/** Resolves a final transaction. Its record proves the outcome, and the status of its signature does not. */
async function resolve<Data extends SvmTaskData, Proof, Names extends string>(
  context: ConfirmContext<Names>,
  { task, prove, settle, tokens = [], onFinal }: Settling<Data, Proof, Names>,
  state: LandingState,
): Promise<Result<Data, Names>> {
  const { effect, port, budget } = context
  const { raw, externalId: signature } = attemptOf(effect)
  const landed = await port.chain.transaction(signature, port.chain.row.finality)
  // The node that showed the status may be ahead of the node that is asked for the record, or on another fork.
  if (!landed) return ofTask(waitingResult(context, state))
  const landing = port.readLanding(landed, { raw, account: String(effect.intent.account) })
  onFinal?.(task)
  if (landing.failure !== undefined) return ofTask(failedResult(context, landing))
  const proof = prove(task, { ...landing, signature })
  if (proof === undefined) return ofTask(reviewResult(context))
  const data: SvmTaskData = {
    transactions: transactionsOf(context, { status: 'finalized', slot: landing.slot }),
    balance_changes: balanceChangesOf(port.chain.row, landing, tokens),
  }
  return addToResult(await settle(proof), {
    effects: [{ effectId: effect.id, status: 'confirmed', attemptExternalId: signature }],
    data: data as Partial<Data>,
    // The budget row is locked first, as in the accepting transaction; another order could deadlock.
    writes: (tx) => budget.settle(tx, task.id, landing.sponsorLamports),
  })
}

/** Ends the task of a transaction that was included and failed: the sponsor paid its fee, and nothing moved. */
function failedResult<Names extends string>(
  context: ConfirmContext<Names>,
  landing: Landing,
): SvmStepResult<Names> {
  // A record that shows both a failure and balance changes contradicts itself, so an operator reviews it.
  if (landing.deltas.length > 0) return reviewResult(context)
  const { task, budget } = context
  const end = droppedResult(context, {
    code: 'tx_failed',
    message: `The transaction failed: ${landing.failure}`,
    status: 'failed',
    slot: landing.slot,
    proof: { slot: String(landing.slot), failure: landing.failure ?? '' },
  })
  return { ...end, writes: (tx) => budget.settle(tx, task.id, landing.sponsorLamports) }
}

/** Signs a transaction again once it can never land, or ends its task. */
function expire<Names extends string>(
  context: ConfirmContext<Names>,
  finding: Exclude<ExpiryFinding, { reading: unknown } | { unprovable: true }>,
  { signsAgain }: { signsAgain: boolean },
): SvmStepResult<Names> {
  const { task, effect, steps, now, policy } = context
  if ('absence' in finding) {
    const { park } = pollAgain(task, steps.confirm, pollBackoff)
    return {
      park: { ...park, afterMs: resendMs },
      state: 'submitted',
      effects: updateOf(context, 'sent'),
      data: { absence: finding.absence },
    }
  }
  const release = { userId: task.userId, taskId: task.id, intent: effect.intent }
  const dropped = {
    effects: [{ effectId: effect.id, status: 'dropped' as const, proof: finding.proof }],
    data: { absence: null, polls: 0, transactions: transactionsOf(context, { status: 'dropped' }) },
    // The amount that the dead signature counted against the caps becomes available to the next signature.
    writes: (tx: Tx) => policy.release(tx, release),
  }
  // A database that was restored to an earlier state does not know later signatures of the task, so these are looked up
  // first.
  if (signsAgain && outsideId(task) !== undefined)
    return { ...dropped, park: { afterMs: 0, next: steps.sign }, state: 'reconciling', outcome: 'unknown' }
  if (signsAgain && maySignAgain(task, { now, step: steps.sign }))
    return { ...dropped, next: steps.sign, state: 'held' }
  return droppedResult(context, { ...expired, status: 'dropped', proof: finding.proof })
}

const expired = { code: 'expired', message: 'The transaction was not included before its blockhash expired' }

const maySignAgain = (task: TaskView<object>, { now, step }: { now: Date; step: string }): boolean =>
  now < task.deadline &&
  task.effects.filter((each) => each.kind === effectKind && each.step === step).length < signaturesMax

/** Ends a task whose signatures can never land and that may not sign again; undefined for any other task. */
export function endOfDropped(
  task: TaskView<object>,
  { port, ...at }: { port: SvmPort; now: Date; step: string },
): EndResult<never> | undefined {
  const isSigned = task.effects.some(({ kind, step }) => kind === effectKind && step === at.step)
  return isSigned && !maySignAgain(task, at) ? failedBecause(port, expired) : undefined
}

const failedBecause = (port: SvmPort, { code, message }: { code: string; message: string }) =>
  notExecuted({ code, message, retryable: false, upstream: port.chain.row.displayName })

/** Parks the task; the watcher wakes it when the signature appears, becomes final, or vanishes with its fork. */
function waitingResult<Names extends string>(
  context: ConfirmContext<Names>,
  { reading: { status }, outcomeUnknown }: LandingState,
): SvmStepResult<Names> {
  const { task, effect, port, steps } = context
  const { data, park } = pollAgain(task, steps.confirm, status ? watchedBackoff : pollBackoff)
  const afterMs = status ? park.afterMs : Math.min(park.afterMs, resendMs)
  const isWatched = port.watcher.wakeOnNews({
    taskId: task.id,
    subject: attemptOf(effect).externalId,
    afterMs,
    isNews: (reading) =>
      isFinal(port, reading.status) || (reading.status === undefined) !== (status === undefined),
  })
  const isSendUnknown = outcomeUnknown && !status
  return {
    park: { ...park, afterMs: isWatched ? afterMs : Math.min(afterMs, pollBackoff.firstMs) },
    state: isSendUnknown ? 'reconciling' : status ? 'confirming' : 'submitted',
    ...(isSendUnknown && { outcome: 'unknown' as const }),
    effects: updateOf(context, isSendUnknown ? 'unknown' : 'sent'),
    data: {
      ...data,
      absence: null,
      transactions: transactionsOf(
        context,
        status ? { status: 'confirmed', slot: status.slot } : { status: 'pending' },
      ),
    },
  }
}

type DropReason = { code: string; message: string; status: ShownStatus; slot?: bigint; proof: JsonObject }

function droppedResult<Names extends string>(
  context: ConfirmContext<Names>,
  { code, message, status, slot, proof }: DropReason,
): EndResult<SvmTaskData> {
  const { effect, port } = context
  return {
    ...failedBecause(port, { code, message }),
    effects: [{ effectId: effect.id, status: 'dropped', proof }],
    data: { transactions: transactionsOf(context, slot === undefined ? { status } : { status, slot }) },
  }
}
