import { signatureOf } from '#engines/venue/records/record-store.ts'
import { toUnits, usdDecimals } from '#kernel/money.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'

type SearchDeps = { db: Queryable; venue: Pick<Hyperliquid, 'ledgerSince'> }
type Asked = { account: string; amount_usd: string; since_ms: number }

/** Of the venue's list: an older withdrawal is the operator's to compare. */
const withdrawnBeforeMs = 7 * 24 * 3_600_000

/**
 * A withdrawal has no id of ours. One of the same amount whose signature this database does not know was made by a task that it
 * has forgotten, under this execution id or under another one.
 */
export async function withdrawnBefore({ db, venue }: SearchDeps, { data }: { data: Asked }) {
  const { account, amount_usd: amount, since_ms } = data
  const asked = toUnits(amount, usdDecimals)
  const isEqual = ({ type, amountUsd, feeUsd }: LedgerUpdate) =>
    type === 'withdraw' &&
    amountUsd !== null &&
    [0n, toUnits(feeUsd ?? '0', usdDecimals)].some((fee) => toUnits(amountUsd, usdDecimals) + fee === asked)
  const equal = (await venue.ledgerSince(account, since_ms - withdrawnBeforeMs)).filter(isEqual)
  for (const { nonce, hash } of equal)
    if ((await signatureOf(db, account.toLowerCase(), nonce)) !== 'own')
      return { note: `the venue has paid out a withdrawal of ${amount} USD that no task made: ${hash}` }
  return undefined
}
