/** After a serialization failure or deadlock nothing was committed, and an immediate retry can succeed. */
export const isConflict = (error: unknown): boolean => {
  const { code } = (error ?? {}) as { code?: string }
  return code === '40001' || code === '40P01'
}

/** Returns whether the server cancelled a statement at its time limit, for example while it waited for a row. */
export const isStatementTimeout = (error: unknown): boolean =>
  (error as { code?: string } | null)?.code === '57014'
