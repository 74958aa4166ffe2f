import type pg from 'pg'
import type { Patience } from '#kernel/arrival-batches.ts'
import { query } from '#store/query.ts'

/** How long a statement waits for each row that another transaction has locked; without it, to its own time limit. */
export type LockWait = { lockWaitMs?: number | undefined }

/** Of a batch: beyond this its members run singly, so that the row of one user delays the others no longer. */
export const batchLockWaitMs = 200

/**
 * What waits with patience is about one user. The number of the user's events is locked last, after rows that many users
 * share: so this waits for it before any of them is locked.
 */
export async function startLockWait(
  pool: pg.Pool,
  userId: string | undefined,
  { isPatient }: Patience,
): Promise<LockWait> {
  if (!isPatient) return { lockWaitMs: batchLockWaitMs }
  await query(pool, 'select 1 from user_event_seq where user_id = $1 for no key update', [userId])
  return {}
}

/** PostgreSQL gave up on a lock, and rolled the statement back. */
export const isLockTimeout = (error: unknown): boolean =>
  (error as { code?: string } | null)?.code === '55P03'
