import { signatureOf, unfrozenMs } from '#engines/venue/records/record-store.ts'
import { toUnits, usdDecimals } from '#kernel/money/money.ts'
import { type Queryable, query } from '#store/query.ts'
import { adoptedKind } from '#store/record-found-effect.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'

type SearchDeps = { db: Queryable; venue: Pick<Hyperliquid, 'ledgerSince'> }
type Asked = { account: string; amount_usd: string; since_ms: number }

/** How far back the venue's list is searched; an operator compares older withdrawals. */
const withdrawnBeforeMs = 7 * 24 * 3_600_000

/**
 * Finds a withdrawal of the same amount whose signature this database does not know. A withdrawal has no id
 * of the gateway at the venue, so a forgotten task made it, under this execution id or another.
 */
export async function withdrawnBefore(
  { db, venue }: SearchDeps,
  { userId, data }: { userId: string; data: Asked },
) {
  const { account, amount_usd: amount, since_ms } = data
  const asked = toUnits(amount, usdDecimals)
  const isEqual = ({ type, amountUsd, feeUsd }: LedgerUpdate) =>
    type === 'withdraw' &&
    amountUsd !== null &&
    [0n, toUnits(feeUsd ?? '0', usdDecimals)].some((fee) => toUnits(amountUsd, usdDecimals) + fee === asked)
  const equal = (await venue.ledgerSince(account, since_ms - withdrawnBeforeMs)).filter(isEqual)
  if (equal.length === 0) return undefined
  const seen = await seenByOperator(db, userId)
  for (const { nonce, hash, atMs } of equal) {
    const owner = await ownerOf(db, account.toLowerCase(), nonce)
    if (owner === 'ended' || atMs <= (owner === 'adopted' ? seen.asOthersMs : seen.anyMs)) continue
    return { note: `the venue has paid out a withdrawal of ${amount} USD that no task made: ${hash}` }
  }
  return undefined
}

/**
 * Returns `ended` if a task made the withdrawal or has ended with it, and `adopted` if only `time adopt` has recorded
 * it. Undefined if nothing here knows the withdrawal.
 */
async function ownerOf(
  db: Queryable,
  account: string,
  nonce: number | null,
): Promise<'ended' | 'adopted' | undefined> {
  const signature = await signatureOf(db, account, nonce)
  if (signature !== 'found') return signature && 'ended'
  const [adopted] = await query(
    db,
    `select t.id from tx_attempt a join effect e on e.id = a.effect_id
       join task t on t.id = e.task_id and t.kind = $2 where a.external_id = $1`,
    [`${account}:${nonce}`, adoptedKind],
  )
  return adopted ? 'adopted' : 'ended'
}

/**
 * Returns until when an operator has examined the user's withdrawals: by unfreezing the account, or by ending a task
 * that an unclear withdrawal had stopped. If the operator ended the task as `not_executed`, the withdrawals until then
 * belong to other requests (`asOthersMs`).
 */
async function seenByOperator(db: Queryable, userId: string): Promise<{ asOthersMs: number; anyMs: number }> {
  const [ended] = await query<{ as_others: Date | null; last: Date | null }>(
    db,
    `select max(completed_at) filter (where outcome = 'not_executed') as as_others, max(completed_at) as last
       from task where user_id = $1 and kind = 'perp_withdraw' and data ? 'unclear_before'`,
    [userId],
  )
  const unfrozen = await unfrozenMs(db, userId)
  const since = (at: Date | null | undefined) => Math.max(unfrozen, at?.getTime() ?? 0)
  return { asOthersMs: since(ended?.as_others), anyMs: since(ended?.last) }
}
