import type { Evm } from './evm.ts'

/** Where a lane that nobody has used yet begins: after everything that the node has seen of the signer. */
export const startNonce = (chain: Pick<Evm, 'transactionCount'>, signer: string): Promise<bigint> =>
  chain.transactionCount(signer, 'pending')

export type StoredAttempt = { nonce: bigint; raw: string }

export type NonceRepairPlan = {
  /** Where the counter should stand; equal to the counter when nothing is wrong. */
  next: bigint
  /** Bytes that were stored and that the chain does not have: sent again as they are, in the order of their nonces. */
  resend: StoredAttempt[]
  /** Numbers that were taken and carry nothing: a transaction that moves nothing fills each. */
  gaps: bigint[]
}

/**
 * What brings counter and chain together again. `mined` is the account's transaction count, `counter` the next number
 * to hand out, `carriers` everything stored under the lane from `mined` on (the newest per nonce is sent).
 */
export function planNonceRepair(
  mined: bigint,
  _counter: bigint,
  attempts: readonly StoredAttempt[],
): NonceRepairPlan {
  const newest = new Map<bigint, StoredAttempt>()
  for (const attempt of attempts) if (attempt.nonce >= mined) newest.set(attempt.nonce, attempt)
  const resend = [...newest.values()].sort((a, b) => (a.nonce < b.nonce ? -1 : 1))
  const afterLast = resend.length > 0 ? resend.at(-1)!.nonce + 1n : mined
  const gaps: bigint[] = []
  for (let nonce = mined; nonce < afterLast; nonce++) if (!newest.has(nonce)) gaps.push(nonce)
  // Numbers above the last stored carrier carry nothing: the counter goes back instead of filling them.
  return { next: afterLast, resend, gaps }
}
