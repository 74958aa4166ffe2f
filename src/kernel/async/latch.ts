export type Latch = {
  set(): void
  /**
   * Resets the latch. A caller resets it before a read, so that the read is at least as new as any earlier `set`.
   */
  reset(): void
  /**
   * Resolves once the latch is set, at the timeout, or when the signal aborts. Only one caller may wait at a time.
   */
  wait(timeoutMs?: number): Promise<void>
} & Disposable

/** Creates a latch: a call of `set` between a caller's check and its wait is not lost. */
export function createLatch(signal?: AbortSignal): Latch {
  let resolveWait: () => void = () => undefined
  let isSet = false
  const onAbort = () => resolveWait()
  signal?.addEventListener('abort', onAbort)
  return {
    set() {
      isSet = true
      resolveWait()
    },
    reset() {
      isSet = false
    },
    async wait(timeoutMs) {
      if (isSet || signal?.aborted) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = timeoutMs === undefined ? undefined : setTimeout(resolve, timeoutMs)
      resolveWait = resolve
      await promise
      clearTimeout(timer)
    },
    [Symbol.dispose]: () => signal?.removeEventListener('abort', onAbort),
  }
}
