import { signatureOf, unfrozenMs } from '#engines/venue/records/record-store.ts'
import { toUnits, usdDecimals } from '#kernel/money/money.ts'
import { type Queryable, query } from '#store/query.ts'
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
  const seenMs = await seenByOperator(db, userId)
  for (const { nonce, hash, atMs } of equal)
    if (atMs > seenMs && (await signatureOf(db, account.toLowerCase(), nonce)) !== 'own')
      return { note: `the venue has paid out a withdrawal of ${amount} USD that no task made: ${hash}` }
  return undefined
}

/**
 * Until when an operator has examined the user's withdrawals: by unfreezing the account, which adopts what
 * left it, or by ending a task that such a withdrawal had stopped.
 */
async function seenByOperator(db: Queryable, userId: string): Promise<number> {
  const ended = await query<{ at: Date | null }>(
    db,
    `select max(completed_at) as at from task where user_id = $1 and kind = 'perp_withdraw' and data ? 'unclear_before'`,
    [userId],
  )
  return Math.max(await unfrozenMs(db, userId), ended[0]?.at?.getTime() ?? 0)
}
