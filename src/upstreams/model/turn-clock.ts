import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'

/** The three time limits of a turn. When one expires, or the caller gives up, `signal` aborts the work in progress. */
export type TurnClock = {
  signal: AbortSignal
  /** Starts the time limit until the first token of the answer. */
  start(): void
  begin(): void
  /** Returns the time until the turn must have ended. */
  leftMs(): number
  /** Waits for the next bytes of the answer, for at most the time limit between bytes. */
  idle<T>(reading: Promise<T>): Promise<T>
  /** Returns what the caller of the turn gets for an error: its abort reason, the expired limit, or the error. */
  reasonOf(error: unknown): unknown
} & Disposable

type Limits = { firstTokenMs: number; idleMs: number; totalMs: number }

export function createTurnClock(
  { firstTokenMs, idleMs, totalMs }: Limits,
  caller: AbortSignal | undefined,
): TurnClock {
  const own = new AbortController()
  let fault: Fault | undefined
  const expireAfter = (ms: number, sentence: string) =>
    setTimeout(() => {
      fault ??= new Fault('upstream_timeout', sentence, { extras: { upstream: 'model' } })
      own.abort(fault)
    }, ms)
  const endsMs = monotonicMs() + totalMs
  const total = expireAfter(totalMs, `The model did not finish its answer within ${totalMs} ms`)
  let first: ReturnType<typeof setTimeout> | undefined
  return {
    signal: caller ? AbortSignal.any([caller, own.signal]) : own.signal,
    start() {
      clearTimeout(first)
      first = expireAfter(firstTokenMs, `The model did not begin its answer within ${firstTokenMs} ms`)
    },
    begin: () => clearTimeout(first),
    leftMs: () => endsMs - monotonicMs(),
    async idle(reading) {
      const timer = expireAfter(idleMs, `The model was silent for ${idleMs} ms`)
      try {
        return await reading
      } finally {
        clearTimeout(timer)
      }
    },
    reasonOf: (error) => (caller?.aborted ? caller.reason : (fault ?? error)),
    [Symbol.dispose]() {
      clearTimeout(total)
      clearTimeout(first)
      // Frees the connection of a turn that its caller does not read to the end.
      own.abort()
    },
  }
}
