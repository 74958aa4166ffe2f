/** How long a batch waits for a locked row. Its items then run singly, so that one user's row delays no other user. */
export const batchLockWaitMs = 200

/** Returns whether PostgreSQL gave up waiting for a lock. The statement was rolled back. */
export const isLockTimeout = (error: unknown): boolean =>
  (error as { code?: string } | null)?.code === '55P03'

/** Returns whether the server cancelled a statement at its time limit, for example while it waited for a row. */
export const isStatementTimeout = (error: unknown): boolean =>
  (error as { code?: string } | null)?.code === '57014'
