import { takeNonceAlone } from '#durable/run/nonces.ts'
import { buildEffect, signedEffectJson } from '#durable/run/signed-effect.ts'
import { transition, transitionEvents } from '#durable/run/step-transition.ts'
import { taskAfter } from '#durable/run/write-tasks.ts'
import { stepView } from '#durable/task/task-row.ts'
import type { Transactions } from '#durable/transactions.ts'
import type { KeyedMutex } from '#kernel/async/keyed-mutex.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import { ApprovalRequired } from '#kernel/task/approval.ts'
import type { SignedEffect, SignInOrder, SignOnAccept, StepResult } from '#kernel/task/task.ts'
import type { Acceptance, StoredSignature } from './acceptance.ts'

/** Signs during the acceptance if a task's first step signs: the task is accepted in the state after this step. */

type FirstSignatureDeps = {
  transactions: Transactions
  clock: Clock
  random: Random
  /** A mutex by nonce sequence: if a sequence is locked elsewhere, only one connection waits for it. */
  turns: KeyedMutex
}
type SigningResult = Extract<StepResult, { sign: unknown }>

const signOnAcceptMsMax = 3_000

/** Runs a task's first step before the task exists; returns undefined if it is slow or does more than sign. */
export const signFirstStep = (
  deps: FirstSignatureDeps,
  acceptance: Acceptance,
): Promise<Acceptance | undefined> =>
  trySigning(deps, acceptance).catch((error: unknown) => {
    // Only the acceptance decides whether a person has approved the task, so a later step signs.
    if (error instanceof ApprovalRequired) return undefined
    throw error
  })

async function trySigning(deps: FirstSignatureDeps, acceptance: Acceptance): Promise<Acceptance | undefined> {
  const { task, wanted } = acceptance
  const { signOnAccept: canSign } = wanted.admission
  if (!canSign || !wanted.leased) return undefined
  // A task that a chat starts also counts against its user's limit for chats, and one that a run starts against the
  // budget of its schedule. The policy's check of a signature does not know who asked for it, so a later step signs.
  const action = wanted.admission.spend?.action
  if (action?.principal === 'chat' || action?.budget) return undefined
  const signal = AbortSignal.timeout(signOnAcceptMsMax)
  const step = canSign === true ? wanted.kind.steps[task.step] : canSign
  const result = await step?.(stepView(task, []), { now: task.created_at, signal, stopping: signal })
  if (!result || !onlySigns(result)) return undefined
  const { signOnAccept, signInOrder } = result.sign
  if (signInOrder)
    return withSignatureInOrder(deps, withResult(deps, acceptance, result), result, await signInOrder())
  return signOnAccept && signNow(deps, acceptance, result, signOnAccept)
}

function onlySigns(result: StepResult): result is SigningResult {
  return 'sign' in result && !result.writes && (result.effects ?? []).length === 0
}

/** Reads the nonce and the policy in one round trip; no lock is held while the signature is made. */
async function signNow(
  deps: FirstSignatureDeps,
  acceptance: Acceptance,
  result: SigningResult,
  signOnAccept: () => Promise<SignOnAccept>,
): Promise<Acceptance | undefined> {
  const { nonceSequence, minNonce } = result.sign
  const takeNonce = () => takeNonceAlone(deps.transactions.pool, nonceSequence, minNonce)
  const [nonce, sign] = await Promise.all([
    deps.turns.run(Object.values(nonceSequence).join(' '), takeNonce),
    signOnAccept(),
  ])
  // The result of the step is too old: the task is accepted without the result, and runs the step again.
  if (deps.clock.now().getTime() - acceptance.task.created_at.getTime() > signOnAcceptMsMax) return undefined
  const { grant, check, rows, ...built } = await sign(nonce)
  const signature = storedSignature(deps, acceptance, result, built)
  return {
    ...withResult(deps, acceptance, result),
    ...grantOf(acceptance, { grant, check }),
    rows,
    signature,
  }
}

function withSignatureInOrder(
  deps: FirstSignatureDeps,
  acceptance: Acceptance,
  result: SigningResult,
  { grant, check, rows, sign }: SignInOrder,
): Acceptance {
  const { nonceSequence: sequence, minNonce = 0n } = result.sign
  const inOrder = {
    sequence,
    minNonce,
    sign: async (nonce: bigint) => storedSignature(deps, acceptance, result, await sign(nonce)),
  }
  return { ...acceptance, ...grantOf(acceptance, { grant, check }), rows, inOrder }
}

function withResult(
  { clock }: FirstSignatureDeps,
  acceptance: Acceptance,
  result: SigningResult,
): Acceptance {
  const { task } = acceptance
  const change = transition(task, result)
  const after = { ...taskAfter(task, change, clock.now()), version: task.version }
  return {
    ...acceptance,
    task: after,
    events: [...acceptance.events, ...transitionEvents(task, after, change.events)],
  }
}

function storedSignature(
  deps: FirstSignatureDeps,
  { wanted }: Acceptance,
  { sign: { nonceSequence } }: SigningResult,
  built: SignedEffect,
): StoredSignature {
  const step = wanted.admission.first
  const effect = buildEffect(deps, built, nonceSequence, step)
  return { effect, json: { done: step, ...signedEffectJson(built, effect, nonceSequence) } }
}

/** Prefers the policy's grant for the signature, which covers more than its grant for the admission. */
const grantOf = (acceptance: Acceptance, { grant, check }: Pick<Acceptance, 'grant' | 'check'>) => ({
  grant: grant ?? acceptance.grant,
  check: check ?? acceptance.check,
})
