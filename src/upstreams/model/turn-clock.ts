import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'

/** The three time limits of a turn. When one expires, or the caller gives up, `signal` aborts what is under way. */
export type TurnClock = {
  signal: AbortSignal
  /** The first token is awaited from now on. */
  start(): void
  /** The first token has come. */
  begin(): void
  /** Until the turn must have ended. */
  leftMs(): number
  /** Awaits bytes, for the time without any at most. */
  idle<T>(reading: Promise<T>): Promise<T>
  /** What the caller gets for an error: its own reason, the limit that expired, or the error. */
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
