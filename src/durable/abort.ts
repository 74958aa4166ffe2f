/** The signal ended before the step did; what the step answers later is discarded. */
export class StepAborted extends Error {}

/** Ends with the work or with the signal, whichever is first. */
export const raceAbort = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const stop = () => reject(new StepAborted('the step was aborted', { cause: signal.reason }))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
