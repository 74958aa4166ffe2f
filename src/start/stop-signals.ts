/** What a start and its parts watch, so that a stop ends every process at any moment. */
export type Stop = {
  /** Gives up a start that is not ready yet. */
  cancelled: AbortSignal
  /** Ends at once what has not ended in order. */
  forced: AbortSignal
}

type Handlers = {
  stop: (signal: NodeJS.Signals) => void
  /** Ends everything at once, for a person who does not want to wait. */
  stopNow: () => void
}
type Surroundings = {
  process?: { on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown }
  nowMs?: () => number
}

/** A closed terminal sends SIGHUP. */
const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
/**
 * Supervisors and terminals signal the whole process group, and npm and the launcher forward signals, so one
 * stop arrives several times. The copies come within this time; a later signal is a second request.
 */
const copiesMsMax = 1_000

export function onStopSignals(
  { stop, stopNow }: Handlers,
  { process: source = process, nowMs = () => performance.now() }: Surroundings = {},
): void {
  let firstAtMs: number | undefined
  for (const name of stopSignals)
    source.on(name, (signal) => {
      if (firstAtMs === undefined) {
        firstAtMs = nowMs()
        stop(signal)
      } else if (nowMs() - firstAtMs > copiesMsMax) stopNow()
    })
}
