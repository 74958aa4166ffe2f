import { recheckAt, type VenueAccount } from '#engines/venue/records/account-store.ts'
import { createKeyedMutex } from '#kernel/async/keyed-mutex.ts'
import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import type { Queryable } from '#store/query.ts'

/** Runs work on accounts, one at a time per account, and logs its failures. */
export function createAccountQueue(log: Log, failed: () => void) {
  const { run, pending, drained } = createKeyedMutex()
  return {
    pending,
    drained,
    run: (userId: string, work: () => Promise<void>): Promise<void> =>
      run(userId, work).catch((error: unknown) => {
        failed()
        // An unavailable upstream is expected; anything else is a defect.
        if (error instanceof Fault)
          log.debug({ error, userId }, 'venue account not compared: upstream unavailable')
        else log.warn({ error, userId }, 'comparison of a venue account failed')
      }),
  }
}

const afterFaultMs = 20_000
/**
 * The pause after a failure for a new account. It is shorter, because an account has no record before its first
 * baseline.
 */
const newAfterFaultMs = 3_000

/** Delays an account's next comparison after a failure, at least by the venue's `retry_after`. */
export const postponeAfterFailure = (db: Queryable, account: VenueAccount, now: Date, error: unknown) => {
  const askedMs = error instanceof Fault ? Number(error.extras.retry_after ?? 0) * 1_000 : 0
  const pauseMs = account.state === 'new' ? newAfterFaultMs : afterFaultMs
  return recheckAt(db, account, later(now, Math.max(askedMs, pauseMs)))
}
