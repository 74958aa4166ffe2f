import type { ChangePoller } from './change-poller.ts'
import { type Notifier, taskTopic } from './notifier.ts'

export type Latch = {
  set(): void
  /** From here on a ring counts. What is looked at after this is at least as new as any ring before. */
  reset(): void
  /** Until it rings or has rung, the time is over where there is one, or the signal fires. */
  wait(timeoutMs?: number): Promise<void>
} & Disposable

/** Is heard also while nobody waits, so that a change between a look and the wait after it is never missed. */
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

/** Looks at once, and again at each hint and where a poll finds the task ended, until `look` answers or the time is over. */
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
