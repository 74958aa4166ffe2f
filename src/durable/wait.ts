import type { Wake } from './wake.ts'

/** How long a change may go unnoticed when its hint was lost. */
export const pollMs = 1_000

export type Bell = {
  ring(): void
  /** From here on a ring counts. What is looked at after this is at least as new as any ring before. */
  forget(): void
  hasRung(): boolean
  /** Until it rings or has rung, the time is over, or the signal fires. */
  rung(timeoutMs: number): Promise<void>
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
    hasRung: () => hasRung,
    async rung(timeoutMs) {
      if (hasRung || signal?.aborted) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs)
        wakeUp = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
    [Symbol.dispose]: () => signal?.removeEventListener('abort', leave),
  }
}

/** Looks at once, and again at each hint and at each poll, until `look` answers, the time is over, or the caller left. */
export async function waitFor<T>(
  wake: Wake,
  topic: string,
  look: () => Promise<T | undefined>,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal },
): Promise<T | undefined> {
  const until = performance.now() + timeoutMs
  using hints = bell(signal)
  using _hearing = wake.on(topic, hints.ring)
  while (true) {
    hints.forget()
    const found = await look()
    const leftMs = until - performance.now()
    if (found !== undefined || leftMs <= 0 || signal?.aborted) return found
    await hints.rung(Math.min(pollMs, leftMs))
  }
}
