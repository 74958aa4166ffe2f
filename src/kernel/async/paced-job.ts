export type PacedJob = {
  /** Starts the next run after at most this delay. A run that is under way is followed by another run. */
  runWithin(afterMs?: number): void
} & AsyncDisposable

type PacedOptions = {
  /** Receives the failure of a run; the next run follows after `retryMs`. */
  onError: (error: unknown) => void
  retryMs: number
}

/** Runs a job repeatedly without overlap. Each run returns the milliseconds until the next run. */
export function startPacedJob(run: () => Promise<number>, { onError, retryMs }: PacedOptions): PacedJob {
  let running: Promise<void> | undefined
  let next: { atMs: number; timer: NodeJS.Timeout } | undefined
  let isStopped = false
  const runWithin = (afterMs = 0) => {
    const atMs = performance.now() + afterMs
    if (isStopped || (next && next.atMs <= atMs)) return
    clearTimeout(next?.timer)
    next = { atMs, timer: setTimeout(start, afterMs).unref() }
  }
  const start = () => {
    next = undefined
    if (running) return void running.finally(() => runWithin())
    running = Promise.try(run)
      .catch((error: unknown) => {
        onError(error)
        return retryMs
      })
      .then((afterMs) => {
        running = undefined
        runWithin(afterMs)
      })
  }
  start()
  return {
    runWithin,
    async [Symbol.asyncDispose]() {
      isStopped = true
      clearTimeout(next?.timer)
      await running
    },
  }
}
