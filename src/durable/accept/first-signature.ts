import { takeNonceAlone } from '#durable/run/nonces.ts'
import { buildEffect, signedEffectJson } from '#durable/run/signed-effect.ts'
import { transition, transitionEvents } from '#durable/run/step-transition.ts'
import { taskAfter } from '#durable/run/write-tasks.ts'
import { stepView } from '#durable/task/task-row.ts'
import type { Transactions } from '#durable/transactions.ts'
import { ApprovalRequired } from '#kernel/approval.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { KeyedMutex } from '#kernel/keyed-mutex.ts'
import type { SignedEffect, SignInOrder, SignOnAccept, StepResult } from '#kernel/task.ts'
import type { StoredSignature, TaskPromise } from './acceptance.ts'

/** Promises whose first step signs: they are accepted as that step leaves them. */

type FirstSignatureDeps = {
  transactions: Transactions
  clock: Clock
  random: Random
  /** Where the nonces of a signer are locked elsewhere, one connection waits for them. */
  turns: KeyedMutex
}
type SigningResult = Extract<StepResult, { sign: unknown }>

const signOnAcceptMsMax = 3_000

/** Runs the first step before its task exists; undefined where the step does more than sign, or took too long. */
export const signFirstStep = (
  deps: FirstSignatureDeps,
  promise: TaskPromise,
): Promise<TaskPromise | undefined> =>
  trySigning(deps, promise).catch((error: unknown) => {
    // Whether the task has the approval is decided by the acceptance: a step signs it afterwards.
    if (error instanceof ApprovalRequired) return undefined
    throw error
  })

async function trySigning(deps: FirstSignatureDeps, promise: TaskPromise): Promise<TaskPromise | undefined> {
  const { task, wanted } = promise
  const { signOnAccept: canSign } = wanted.admission
  if (!canSign || !wanted.leased) return undefined
  // The limit of chats is checked for who asked, which no signature knows: a step signs it afterwards.
  if (wanted.admission.spend?.action.principal === 'chat') return undefined
  const signal = AbortSignal.timeout(signOnAcceptMsMax)
  const step = canSign === true ? wanted.kind.steps[task.step] : canSign
  const result = await step?.(stepView(task, []), { now: task.created_at, signal, stopping: signal })
  if (!result || !onlySigns(result)) return undefined
  const { signOnAccept, signInOrder } = result.sign
  if (signInOrder)
    return withSignatureInOrder(deps, withResult(deps, promise, result), result, await signInOrder())
  return signOnAccept && signNow(deps, promise, result, signOnAccept)
}

function onlySigns(result: StepResult): result is SigningResult {
  return 'sign' in result && !result.writes && (result.effects ?? []).length === 0
}

/** The nonce and the policy's check are one round trip: no lock is held while the signature is made. */
async function signNow(
  deps: FirstSignatureDeps,
  promise: TaskPromise,
  result: SigningResult,
  signOnAccept: () => Promise<SignOnAccept>,
): Promise<TaskPromise | undefined> {
  const { nonceSequence, minNonce } = result.sign
  const takeNonce = () => takeNonceAlone(deps.transactions.pool, nonceSequence, minNonce)
  const [nonce, sign] = await Promise.all([
    deps.turns.run(Object.values(nonceSequence).join(' '), takeNonce),
    signOnAccept(),
  ])
  // The result of the step is outdated: the task is accepted without it, and the step runs again.
  if (deps.clock.now().getTime() - promise.task.created_at.getTime() > signOnAcceptMsMax) return undefined
  const { grant, check, rows, ...built } = await sign(nonce)
  const signature = storedSignature(deps, promise, result, built)
  return { ...withResult(deps, promise, result), ...grantOf(promise, { grant, check }), rows, signature }
}

function withSignatureInOrder(
  deps: FirstSignatureDeps,
  promise: TaskPromise,
  result: SigningResult,
  { grant, check, rows, sign }: SignInOrder,
): TaskPromise {
  const { nonceSequence: sequence, minNonce = 0n } = result.sign
  const inOrder = {
    sequence,
    minNonce,
    sign: async (nonce: bigint) => storedSignature(deps, promise, result, await sign(nonce)),
  }
  return { ...promise, ...grantOf(promise, { grant, check }), rows, inOrder }
}

function withResult({ clock }: FirstSignatureDeps, promise: TaskPromise, result: SigningResult): TaskPromise {
  const { task } = promise
  const change = transition(task, result)
  const after = { ...taskAfter(task, change, clock.now()), version: task.version }
  return {
    ...promise,
    task: after,
    events: [...promise.events, ...transitionEvents(task, after, change.events)],
  }
}

function storedSignature(
  deps: FirstSignatureDeps,
  { wanted }: TaskPromise,
  { sign: { nonceSequence } }: SigningResult,
  built: SignedEffect,
): StoredSignature {
  const step = wanted.admission.first
  const effect = buildEffect(deps, built, nonceSequence, step)
  return { effect, json: { done: step, ...signedEffectJson(built, effect, nonceSequence) } }
}

/** The signature's own evaluation covers more than that of the admission. */
const grantOf = (promise: TaskPromise, { grant, check }: Pick<TaskPromise, 'grant' | 'check'>) => ({
  grant: grant ?? promise.grant,
  check: check ?? promise.check,
})
