import type { Transact } from '#durable/transactions.ts'
import { findAccount, type VenueAccount } from '#engines/venue/records/account-store.ts'
import type { Difference } from '#engines/venue/records/expected-balances.ts'
import * as record from '#engines/venue/records/record-store.ts'
import type { Queryable } from '#store/query.ts'

/** Rolls the baseline of an account forward, so that a comparison sums few records however old the account is. */

const entriesMax = 2_000
const ageMsMax = 24 * 3_600_000
/**
 * How far back the new baseline lies, so that records the venue adds late still count, and the fills of a
 * running task are still compared with its result.
 */
export const baselineLagMs = 10 * 60_000

type Compared = {
  /** The time of the comparison by the venue's clock. */
  atMs: number
  /** The number of records that the comparison summed. */
  entries: number
  /**
   * The deviations within the venue's rounding. They are recorded, because a later comparison sums fewer records and
   * therefore tolerates less rounding.
   */
  rounding: readonly Difference[]
}

/** Moves the baseline to the balances that the record expects, not those at the venue, so that a mismatch stays. */
export async function rollBaseline(
  { db, transact }: { db: Queryable; transact: Transact },
  account: VenueAccount,
  { atMs, entries, rounding }: Compared,
): Promise<void> {
  const isOld = atMs - Number(account.baseline_at_ms) >= ageMsMax
  if (entries === 0 || (entries < entriesMax && !isOld)) return
  const rollAtMs = atMs - baselineLagMs
  if (rollAtMs <= Number(account.baseline_at_ms)) return
  const settled = await record.expectedAt(db, account, rollAtMs)
  // Most records are recent, so rolling now would save little; a later comparison rolls further.
  if (settled.entries < entriesMax / 2 && !isOld) return
  await transact(async (tx) => {
    const current = await findAccount(tx, account.user_id, { lock: true })
    if (current?.baseline_at_ms !== account.baseline_at_ms || current.state !== 'active') return
    const reason = 'rounding of the venue'
    await record.addAdjustments(tx, account, rounding, { kind: 'rounding', reason, atMs: rollAtMs })
    const { expected } = await record.expectedAt(tx, current, rollAtMs)
    await record.replaceBaseline(tx, current, expected, rollAtMs)
  })
}
