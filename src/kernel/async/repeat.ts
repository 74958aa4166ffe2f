export type RepeatOptions = {
  everyMs: number
  /** Receives the failure of a run; the next run tries again. A job without `onError` must not fail. */
  onError?: (error: unknown) => void
  immediately?: boolean
}

/**
 * Runs a job at an interval. Runs do not overlap: a tick during a run is skipped. Disposal waits for the run
 * under way. The interval does not keep the process alive.
 */
export function repeat(
  run: () => Promise<unknown>,
  { everyMs, onError, immediately = false }: RepeatOptions,
): AsyncDisposable {
  let running: Promise<unknown> | undefined
  const tick = () => {
    running ??= Promise.try(run)
      .catch((error: unknown) => {
        if (!onError) throw error
        onError(error)
      })
      .finally(() => {
        running = undefined
      })
  }
  const timer = setInterval(tick, everyMs).unref()
  if (immediately) tick()
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await running
    },
  }
}
