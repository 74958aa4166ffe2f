import type { Log } from '#kernel/log.ts'

/** The abort signals that a start and its parts observe, so that a stop ends every process at any moment. */
export type Stop = {
  /** Aborts when a stop begins, so that a start that is not ready yet is given up. */
  cancelled: AbortSignal
  /** Aborts when the time for an orderly stop is over, so that all that still runs is ended at once. */
  forced: AbortSignal
}

type Handlers = {
  stop: (signal: NodeJS.Signals) => void
  /** Ends every process at once, for a person who does not want to wait. */
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

/** How long an orderly stop may take; then all that still runs is ended at once, which takes a second or two. */
const stopMsMax = 8_500
/** How long a forced stop may take before the process exits although some part still hangs. */
const forcedMsMax = 6_000

type Stopped = {
  gateway: Promise<{ close(): Promise<void> }>
  cancelling: AbortController
  forcing: AbortController
  log: Log
  printLine: (line: string) => void
}

/** Ends the process: with code 0 if everything was closed in order. Accepted work is stored, so the next start resumes it. */
export const stopOf =
  ({ gateway, cancelling, forcing, log, printLine }: Stopped) =>
  async (cause: string): Promise<void> => {
    const [cancelled, forced] = [cancelling.signal, forcing.signal]
    if (cancelled.aborted) return
    printLine(`portico stopping (${cause})`)
    cancelling.abort()
    const end = (sentence: string, code: number): never => {
      printLine(`portico ${sentence}`)
      process.exit(code)
    }
    const exitForced = () => end('stopped before everything was closed', 1)
    setTimeout(() => forcing.abort(), stopMsMax).unref()
    forced.addEventListener('abort', () => setTimeout(exitForced, forcedMsMax).unref())
    await close(gateway, cancelled).catch((error: unknown) => {
      if (error !== forced.reason) log.error({ error }, 'shutdown failed')
      exitForced()
    })
    if (forced.aborted) exitForced()
    end('stopped', 0)
  }

async function close(gateway: Stopped['gateway'], cancelled: AbortSignal): Promise<void> {
  const started = await gateway.catch((error: unknown) => {
    if (error !== cancelled.reason) throw error
  })
  await started?.close()
}
