import type pg from 'pg'
import type { WaitOption } from '#kernel/async/arrival-batches.ts'
import { createFairQueue } from '#kernel/async/fair-queue.ts'
import { createKeyedMutex } from '#kernel/async/keyed-mutex.ts'
import { batchLockWaitMs } from '#store/lock-timeout.ts'
import { query } from '#store/query.ts'

/** How long a statement waits for each row that another transaction has locked; without it, to its own time limit. */
export type LockWait = { lockWaitMs?: number | undefined }

/**
 * What may wait is about one user. The number of the user's events is locked last, after rows that many users
 * share: so this waits for it before any of them is locked.
 */
export async function startLockWait(
  pool: pg.Pool,
  userId: string | undefined,
  { mayWait }: WaitOption,
): Promise<LockWait> {
  if (!mayWait) return { lockWaitMs: batchLockWaitMs }
  await query(pool, 'select 1 from user_event_seq where user_id = $1 for no key update', [userId])
  return {}
}

/** Each transaction that waits for locked rows keeps a connection: one of a user, and a few of all users together. */
export type LockWaiters = { run<T>(userId: string, work: () => Promise<T>): Promise<T> }

const waitersMax = 4

export function createLockWaiters(): LockWaiters {
  const turns = createKeyedMutex()
  // Those that wait for a turn hold no connection; what bounds them is the number of open requests.
  const unbounded = Number.POSITIVE_INFINITY
  const queue = createFairQueue({
    runsMax: waitersMax,
    waitingMax: unbounded,
    waitingOfKeyMax: unbounded,
  })
  return { run: (userId, work) => turns.run(userId, () => queue.run(userId, work)) }
}
