import type { Evm } from './evm.ts'

/** The first nonce of a new sequence: after every transaction of the signer that the node knows, pending ones included. */
export const startNonce = (chain: Pick<Evm, 'transactionCount'>, signer: string): Promise<bigint> =>
  chain.transactionCount(signer, 'pending')

export type StoredAttempt = {
  nonce: bigint
  raw: string
  effectId: string
  /** Its number among the attempts of the effect. */
  n: number
  /** The effect can change nothing any more: its bytes only hold their nonce. */
  isFinal: boolean
  storedAt: Date
}

export type NonceRepairPlan = {
  /** The next nonce to hand out. Equals the counter when nothing is wrong. */
  next: bigint
  /** Stored bytes that the chain lacks. They are sent again unchanged, in the order of their nonces. */
  resend: StoredAttempt[]
  /** Nonces without stored bytes. A transaction that moves nothing fills each. */
  gaps: bigint[]
  /** Mined nonces that were never handed out: the commits that took them are lost, or somebody else has the key. */
  unknown?: { from: bigint; to: bigint }
}

/**
 * Plans how the nonce counter and the chain agree again. `mined` is the account's transaction count, `counter` the
 * next nonce to hand out, `attempts` all bytes stored for the sequence from `mined` on. The newest per nonce is sent.
 */
export function planNonceRepair(
  mined: bigint,
  counter: bigint,
  attempts: readonly StoredAttempt[],
): NonceRepairPlan {
  const newest = new Map<bigint, StoredAttempt>()
  for (const attempt of attempts) if (attempt.nonce >= mined) newest.set(attempt.nonce, attempt)
  const resend = [...newest.values()].sort((a, b) => (a.nonce < b.nonce ? -1 : 1))
  const afterLast = resend.length > 0 ? resend.at(-1)!.nonce + 1n : mined
  const gaps: bigint[] = []
  for (let nonce = mined; nonce < afterLast; nonce++) if (!newest.has(nonce)) gaps.push(nonce)
  // Nonces above the last stored attempt were never signed: the counter goes back instead of filling them.
  const unknown = mined > counter && { unknown: { from: counter, to: mined } }
  return { next: afterLast, resend, gaps, ...unknown }
}

export type AbandonedAttempt = StoredAttempt & {
  /** The oldest nonce, unmined for so long that its fees alone do not explain it. */
  isOverdue: boolean
}

/** Signatures of one round; the next round makes the others. */
const abandonedMax = 100
const overdueMs = 600_000

/**
 * The attempts of final effects that every later nonce waits for, from the oldest unmined nonce on. They end at the
 * first live effect, which only its own task replaces. New bytes get the time that the chain needs to mine them.
 */
export function abandonedAttempts(
  { mined, resend }: { mined: bigint; resend: readonly StoredAttempt[] },
  { now, stuckAfterMs }: { now: Date; stuckAfterMs: number },
): AbandonedAttempt[] {
  const firstLive = resend.findIndex(({ isFinal }) => !isFinal)
  const ageMs = ({ storedAt }: StoredAttempt) => now.getTime() - storedAt.getTime()
  return resend
    .slice(0, firstLive === -1 ? resend.length : firstLive)
    .filter((attempt) => ageMs(attempt) >= stuckAfterMs)
    .slice(0, abandonedMax)
    .map((attempt) => ({
      ...attempt,
      isOverdue: attempt.nonce === mined && ageMs(attempt) >= overdueMs,
    }))
}
