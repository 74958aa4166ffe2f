import { isEnded, type Task } from '#durable/task/task-row.ts'
import { createLatch } from '#kernel/async/latch.ts'
import type { ChangePoller } from './change-poller.ts'
import type { LocalEvents } from './local-events.ts'
import { type Notifier, taskTopic } from './notifier.ts'

type WaitDeps = { notifier: Notifier; changePoller: ChangePoller; localEvents: LocalEvents }
type WaitOptions = {
  timeoutMs: number
  signal?: AbortSignal
  /** The run of the task, if this instance runs it: the task is not read until the run has ended. */
  run?: Promise<Task | undefined> | undefined
}

/** Waits for the end of a task; returns the ended task, or the task in its present state when the time is up. */
export async function waitForEnd(
  { notifier, changePoller, localEvents }: WaitDeps,
  task: Task,
  read: () => Promise<Task>,
  { timeoutMs, signal, run }: WaitOptions,
): Promise<Task> {
  const until = performance.now() + timeoutMs
  let ended: Task | undefined
  let mustRead = run === undefined
  using latch = createLatch(signal)
  const setEnded = (left: Task | undefined) => {
    if (left && isEnded(left)) ended = left
    // The run left the task parked, or to another instance, so the task may have ended since.
    else mustRead = true
    latch.set()
  }
  const setHint = () => {
    mustRead = true
    latch.set()
  }
  // The run may have ended the task before the listeners below are registered.
  void run?.then(setEnded)
  using _ended = localEvents.onEnd(task.id, setEnded)
  using _notified = notifier.on(taskTopic(task.id, task.user_id), setHint)
  using _polling = changePoller.onEnd(task.id, setHint)
  while (true) {
    latch.reset()
    const leftMs = until - performance.now()
    const isOver = leftMs <= 0 || signal?.aborted === true
    if (ended) return ended
    if (mustRead || isOver) {
      mustRead = false
      const shown = await read()
      if (isOver || isEnded(shown)) return shown
    }
    await latch.wait(leftMs)
  }
}
