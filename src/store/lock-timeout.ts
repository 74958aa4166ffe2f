/** Of a batch: beyond this its members run singly, so that the row of one user delays the others no longer. */
export const batchLockWaitMs = 200

/** PostgreSQL gave up on a lock, and rolled the statement back. */
export const isLockTimeout = (error: unknown): boolean =>
  (error as { code?: string } | null)?.code === '55P03'
