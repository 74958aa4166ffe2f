import type { PorticoError } from './errors.ts'

const firstMs = 500
const maxMs = 8_000
/** The longest `Retry-After` that is waited for; the caller has to decide about a longer one. */
const retryAfterMsMax = 30_000

/** After these statuses nothing was executed, so that even a request without an idempotency key can be repeated. */
const refusedUnread = new Set([429, 503])

const isTransient = ({ status }: PorticoError): boolean =>
  status === 0 || status === 408 || status === 429 || status >= 500

export const mayRepeat = (error: PorticoError, { isRepeatable }: { isRepeatable: boolean }): boolean =>
  isTransient(error) && error.retryable && (isRepeatable || refusedUnread.has(error.status))

/**
 * Returns the delay before a retry: `Retry-After`, or else full jitter up to a limit that doubles. Undefined means
 * that the delay is too long to wait.
 */
export function retryDelayMs(retries: number, retryAfter: string | null | undefined): number | undefined {
  const seconds = Number(retryAfter ?? Number.NaN)
  if (retryAfter && Number.isFinite(seconds) && seconds >= 0)
    return seconds * 1_000 <= retryAfterMsMax ? seconds * 1_000 : undefined
  return jittered(firstMs * 2 ** retries, maxMs)
}

export const jittered = (ms: number, msMax: number): number => Math.random() * Math.min(ms, msMax)

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
