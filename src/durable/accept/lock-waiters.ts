import type pg from 'pg'
import type { WaitOption } from '#kernel/async/arrival-batches.ts'
import { createFairQueue } from '#kernel/async/fair-queue.ts'
import { createKeyedMutex } from '#kernel/async/keyed-mutex.ts'
import { query } from '#store/query.ts'
import { batchLockWaitMs } from '#store/timeouts.ts'

/** How long a statement waits for each row locked elsewhere; if undefined, up to the statement's own time limit. */
export type LockWait = { lockWaitMs?: number | undefined }

/** Locks the user's event number before a statement that may wait runs, so that it holds no shared rows. */
export async function startLockWait(
  pool: pg.Pool,
  userId: string | undefined,
  { mayWait }: WaitOption,
): Promise<LockWait> {
  if (!mayWait) return { lockWaitMs: batchLockWaitMs }
  await query(pool, 'select 1 from user_event_seq where user_id = $1 for no key update', [userId])
  return {}
}

/** Each transaction that waits for locked rows occupies a connection, so one per user and a few in all may wait. */
export type LockWaiters = { run<T>(userId: string, work: () => Promise<T>): Promise<T> }

const waitersMax = 4

export function createLockWaiters(): LockWaiters {
  const turns = createKeyedMutex()
  // Requests that wait for a turn hold no connection, and the limit of open requests bounds their number.
  const unbounded = Number.POSITIVE_INFINITY
  const queue = createFairQueue({
    runsMax: waitersMax,
    waitingMax: unbounded,
    waitingOfKeyMax: unbounded,
  })
  return { run: (userId, work) => turns.run(userId, () => queue.run(userId, work)) }
}
