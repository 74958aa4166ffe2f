import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Effect, NewTxAttempt, NonceSequence, SignedEffect } from '#kernel/task/task.ts'

/** Builds the effect of a signed transaction, as steps see it and as the database functions read it. */

export function buildEffect(
  { clock, random }: { clock: Clock; random: Random },
  { effect: built, txAttempt }: SignedEffect,
  nonceSequence: NonceSequence,
  step: string,
): Effect {
  const at = clock.now()
  const { policyReceipt: _receipt, validUntil = null, ...facts } = built
  const common = { status: 'prepared' as const, at }
  return {
    ...facts,
    ...common,
    id: uuidv7(at, random),
    step,
    validUntil,
    txAttempts: [{ ...txAttempt, ...common, n: 0, nonceSequence }],
  }
}

export const signedEffectJson = (
  { effect, txAttempt }: SignedEffect,
  { id }: Effect,
  nonceSequence: NonceSequence,
) => ({
  effect: { ...effect, id },
  txAttempt: txAttemptJson(txAttempt, id, nonceSequence),
})

export const txAttemptJson = (
  attempt: NewTxAttempt,
  effectId: string,
  { kind, chain, signer }: NonceSequence,
) => ({
  effectId,
  raw: attempt.raw,
  externalId: attempt.externalId,
  nonce: String(attempt.nonce),
  nonceKind: kind,
  chain,
  signer,
})
