import type { Evm } from './evm.ts'

/** Returns the first nonce of a new sequence, after every transaction that the node knows, pending ones included. */
export const startNonce = (chain: Pick<Evm, 'transactionCount'>, signer: string): Promise<bigint> =>
  chain.transactionCount(signer, 'pending')

export type StoredAttempt = {
  nonce: bigint
  raw: string
  effectId: string
  /** The number of the attempt within its effect. */
  n: number
  /** True if the effect can change nothing any more; the attempt then only occupies its nonce. */
  isFinal: boolean
  storedAt: Date
}

export type NonceRepairPlan = {
  /** The next nonce to hand out, which equals the counter if nothing is wrong. */
  next: bigint
  /** Stored bytes that the chain lacks. They are sent again unchanged, in the order of their nonces. */
  resend: StoredAttempt[]
  /** Nonces without stored bytes. Each is filled by a transaction that moves nothing. */
  gaps: bigint[]
  /** Mined nonces that were never handed out: the commits that took them are lost, or somebody else has the key. */
  unknown?: { from: bigint; to: bigint }
}

/**
 * Plans how the nonce counter and the chain agree again. `mined` is the account's transaction count, `counter`
 * the next nonce to hand out, and `attempts` all bytes stored from `mined` on; the newest of each nonce is sent.
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
  // Nonces above the last stored attempt were never signed, so the counter goes back instead of filling them.
  const unknown = mined > counter && { unknown: { from: counter, to: mined } }
  return { next: afterLast, resend, gaps, ...unknown }
}

export type AbandonedAttempt = StoredAttempt & {
  /**
   * Whether this attempt has the oldest unmined nonce and has waited for so long that low fees alone do not explain the
   * wait.
   */
  isOverdue: boolean
}

/** At most this many abandoned attempts are replaced in one round; the next round replaces the others. */
const abandonedMax = 100
const overdueMs = 600_000

/**
 * Returns the attempts of final effects that block every later nonce, from the oldest unmined nonce up to the first
 * attempt of a live effect, which only the effect's own task replaces. An attempt younger than `stuckAfterMs` is left
 * out, because the chain may still mine it.
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
