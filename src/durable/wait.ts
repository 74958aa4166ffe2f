import type { Wake } from './wake.ts'

/** How long a change may go unnoticed when its hint was lost. */
const pollMs = 1_000

/**
 * Registers for the topic first and looks second, so that a change between the two is never missed. Looks again at each
 * hint and at each poll until `look` answers, the time is over, or the caller has left.
 */
export async function waitFor<T>(
  wake: Wake,
  topic: string,
  look: () => Promise<T | undefined>,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal },
): Promise<T | undefined> {
  const until = performance.now() + timeoutMs
  let nudge: () => void = () => undefined
  let hinted = false
  const off = wake.on(topic, () => {
    hinted = true
    nudge()
  })
  const leave = () => nudge()
  signal?.addEventListener('abort', leave)
  try {
    while (true) {
      hinted = false
      const found = await look()
      const leftMs = until - performance.now()
      if (found !== undefined || leftMs <= 0 || signal?.aborted) return found
      if (hinted) continue
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(pollMs, leftMs))
        nudge = () => {
          clearTimeout(timer)
          resolve()
        }
        if (hinted || signal?.aborted) nudge()
      })
    }
  } finally {
    off()
    signal?.removeEventListener('abort', leave)
  }
}
