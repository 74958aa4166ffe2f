/** Thrown if the signal aborts before the step has ended; a later result of the step is discarded. */
export class StepAborted extends Error {}

export const raceAbort = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const stop = () => reject(new StepAborted('the step was aborted', { cause: signal.reason }))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
