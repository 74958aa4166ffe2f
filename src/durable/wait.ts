import type { ChangePoller } from './change-poller.ts'
import { taskTopic, type Wake } from './wake.ts'

export type Bell = {
  ring(): void
  /** From here on a ring counts. What is looked at after this is at least as new as any ring before. */
  forget(): void
  /** Until it rings or has rung, the time is over where there is one, or the signal fires. */
  rung(timeoutMs?: number): Promise<void>
} & Disposable

/** Is heard also while nobody waits, so that a change between a look and the wait after it is never missed. */
export function bell(signal?: AbortSignal): Bell {
  let wakeUp: () => void = () => undefined
  let hasRung = false
  const leave = () => wakeUp()
  signal?.addEventListener('abort', leave)
  return {
    ring() {
      hasRung = true
      wakeUp()
    },
    forget() {
      hasRung = false
    },
    async rung(timeoutMs) {
      if (hasRung || signal?.aborted) return
      await new Promise<void>((resolve) => {
        const timer = timeoutMs === undefined ? undefined : setTimeout(resolve, timeoutMs)
        wakeUp = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
    [Symbol.dispose]: () => signal?.removeEventListener('abort', leave),
  }
}

type WaitDeps = { wake: Wake; changes: ChangePoller }

/** Looks at once, and again at each hint and where a poll finds the task ended, until `look` answers or the time is over. */
export async function waitForEnd<T>(
  { wake, changes }: WaitDeps,
  taskId: string,
  look: () => Promise<T | undefined>,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal },
): Promise<T | undefined> {
  const until = performance.now() + timeoutMs
  using hints = bell(signal)
  using _hearing = wake.on(taskTopic(taskId), hints.ring)
  using _polling = changes.onEnd(taskId, hints.ring)
  while (true) {
    hints.forget()
    const found = await look()
    const leftMs = until - performance.now()
    if (found !== undefined || leftMs <= 0 || signal?.aborted) return found
    await hints.rung(leftMs)
  }
}
