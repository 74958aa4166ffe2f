/** Serialization failure and deadlock: nothing was committed, and the same work may succeed at once. */
export const isConflict = (error: unknown): boolean => {
  const { code } = (error ?? {}) as { code?: string }
  return code === '40001' || code === '40P01'
}
