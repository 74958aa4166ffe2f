import type { Fault } from '#kernel/contract/fault.ts'
import { sha256 } from '#kernel/id.ts'
import type { Action, PredictionIntent } from '#kernel/task/signer.ts'
import type { Effect, Intent, JsonObject, StepResultOf, TaskView, Tx } from '#kernel/task/task.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import type { PredmktDeps } from './deps.ts'

/** Signs one action for a prediction market within the commit of a step, with the bytes that are sent later. */

export type EffectKind = 'prediction_order' | 'prediction_sign_in' | 'prediction_relay'
export type SignedPlan = {
  kind: EffectKind
  /** The id by which the venue knows the effect, or one that is unique to the task. */
  externalId: string
  account: string
  action: PredictionIntent['action']
  facts: Pick<Action, 'operation' | 'tokens' | 'recipients' | 'usdMicros' | 'exit'>
  /** Returns the bytes to store and to send. */
  bodyOf: (signature: string) => string
  validUntil?: Date
  /** Runs in the transaction that signs; a fault that it throws is a refusal. */
  writes?: (tx: Tx) => Promise<void>
}
type Onward<Data, Name extends string> = {
  now: Date
  next: Name
  data?: Partial<Data>
  onRefused: (fault: Fault) => StepResultOf<Partial<Data>, Name>
}
export type SignDeps = Pick<PredmktDeps, 'venue' | 'chain' | 'policy' | 'signer' | 'nonces'>

export const nonceKind = 'prediction'

export async function signEffect<Data, Name extends string>(
  { venue, chain, policy, signer, nonces }: SignDeps,
  task: Pick<TaskView<Data>, 'id' | 'userId'>,
  plan: SignedPlan,
  { now, next, data, onRefused }: Onward<Data, Name>,
): Promise<StepResultOf<Partial<Data>, Name>> {
  const { kind, externalId, account, action, facts, bodyOf, validUntil, writes } = plan
  const nonceSequence = { kind: nonceKind, chain: venue.name, signer: account.toLowerCase() }
  await nonces.ensure(nonceSequence, BigInt(now.getTime()))
  const intent: PredictionIntent = {
    type: 'prediction_action',
    venue: venue.name,
    chainId: chain.row.id,
    userId: task.userId,
    taskId: task.id,
    ...facts,
    account,
    action,
  }
  const build: Intent['build'] = async (tx) => {
    await writes?.(tx)
    const receipt = await policy.authorize(tx, intent)
    // The venue creates a wallet for its owner without a signature.
    const signature = action.type === 'create_wallet' ? '' : await signer.signPrediction(intent, receipt)
    const raw = bodyOf(signature)
    return async (nonce) => ({
      effect: {
        kind,
        externalId,
        policyReceipt: receipt.id,
        intent: JSON.parse(canonicalJson(intent)) as JsonObject,
        signed: { body: sha256(raw) },
        ...(validUntil && { validUntil }),
      },
      txAttempt: { externalId: `${account.toLowerCase()}:${nonce}`, raw, nonce },
    })
  }
  const sign: Intent<Partial<Data>, Name> = {
    nonceSequence,
    minNonce: BigInt(now.getTime()),
    build,
    onRefused,
  }
  return { sign, next, state: 'signed', data: Object.assign({}, data, { is_signed: true }) }
}

/** The task's latest effect of a kind that has not been dropped. */
export const latestEffect = (task: Pick<TaskView, 'effects'>, kind: EffectKind): Effect | undefined =>
  task.effects.findLast((effect) => effect.kind === kind && effect.status !== 'dropped')

export const bodyOfEffect = (effect: Effect): string => effect.txAttempts.at(-1)!.raw
