import { createLatch } from '#kernel/latch.ts'
import type { ChangePoller } from './change-poller.ts'
import { type Notifier, taskTopic } from './notifier.ts'
import type { Task } from './task-row.ts'

type WaitDeps = { notifier: Notifier; changePoller: ChangePoller }

/** Calls `poll` at once, at each hint, and when the task has ended, until it returns a value or the time is up. */
export async function waitForEnd<T>(
  { notifier, changePoller }: WaitDeps,
  task: Pick<Task, 'id' | 'user_id'>,
  poll: () => Promise<T | undefined>,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal },
): Promise<T | undefined> {
  const until = performance.now() + timeoutMs
  using latch = createLatch(signal)
  using _notified = notifier.on(taskTopic(task.id, task.user_id), latch.set)
  using _polling = changePoller.onEnd(task.id, latch.set)
  while (true) {
    latch.reset()
    const found = await poll()
    const leftMs = until - performance.now()
    if (found !== undefined || leftMs <= 0 || signal?.aborted) return found
    await latch.wait(leftMs)
  }
}
