/**
 * The result of the work, or undefined where it takes longer. The work continues; a result after the limit is
 * discarded, a failure included.
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
