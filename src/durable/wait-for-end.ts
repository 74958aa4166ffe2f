import { createLatch } from '#kernel/latch.ts'
import type { ChangePoller } from './change-poller.ts'
import { type Notifier, taskTopic } from './notifier.ts'

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
