/** Runs work again and again, one run at a time, and at once when it is woken. */
export type WorkLoop = { wake: () => void; runOnce: () => Promise<void>; stop: () => void }

export const startWorkLoop = (
  work: () => Promise<void>,
  { everyMs, onError }: { everyMs: number; onError: (error: Error) => void },
): WorkLoop => {
  let running: Promise<void> | undefined
  let isWoken = false
  const run = async (): Promise<void> => {
    do {
      isWoken = false
      await work()
    } while (isWoken)
  }
  const runOnce = (): Promise<void> => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
  const wake = (): void => {
    isWoken = true
    // The next interval tries again what failed, such as an unreachable node.
    runOnce().catch(onError)
  }
  const timer = setInterval(wake, everyMs)
  return { wake, runOnce, stop: () => clearInterval(timer) }
}
