/** After a serialization failure or deadlock nothing was committed, and an immediate retry can succeed. */
export const isConflict = (error: unknown): boolean => {
  const { code } = (error ?? {}) as { code?: string }
  return code === '40001' || code === '40P01'
}
