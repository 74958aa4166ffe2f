import type { ChangePoller } from './change-poller.ts'
import { type Notifier, taskTopic } from './notifier.ts'

export type Latch = {
  set(): void
  /** Call before a read: the read is at least as new as any earlier `set`. */
  reset(): void
  /** Resolves once set, at the timeout, or when the signal aborts. */
  wait(timeoutMs?: number): Promise<void>
} & Disposable

/** Latched: a signal raised between the check and the wait is kept. */
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
      await new Promise<void>((resolve) => {
        const timer = timeoutMs === undefined ? undefined : setTimeout(resolve, timeoutMs)
        resolveWait = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
    [Symbol.dispose]: () => signal?.removeEventListener('abort', onAbort),
  }
}

type WaitDeps = { notifier: Notifier; changePoller: ChangePoller }

/** Calls `poll` at once, at each hint, and when the task has ended, until it returns a value or the time is up. */
export async function waitForEnd<T>(
  { notifier, changePoller }: WaitDeps,
  taskId: string,
  poll: () => Promise<T | undefined>,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal },
): Promise<T | undefined> {
  const until = performance.now() + timeoutMs
  using latch = createLatch(signal)
  using _notified = notifier.on(taskTopic(taskId), latch.set)
  using _polling = changePoller.onEnd(taskId, latch.set)
  while (true) {
    latch.reset()
    const found = await poll()
    const leftMs = until - performance.now()
    if (found !== undefined || leftMs <= 0 || signal?.aborted) return found
    await latch.wait(leftMs)
  }
}
