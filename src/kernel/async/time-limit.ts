/**
 * Returns undefined if the work takes longer than the limit; the work continues, and its later result or failure is
 * discarded.
 */
export async function withTimeLimit<T>(work: Promise<T>, limitMs: number): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, limitMs, undefined)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
