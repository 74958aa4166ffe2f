import type { UpstreamFacts } from '#features/discovery/health.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'

type VenueHealthDeps = {
  /** A cheap question. */
  ping: () => Promise<unknown>
  /** When the stream last told of anything, in milliseconds; 0 before it ever did. */
  lastMessageMs: () => number
  clock: Clock
}

const pingEveryMs = 10_000
const downMs = 35_000

/** The stream proves that the venue is there; where it is silent a cheap question does. */
export function venueHealth({ ping, lastMessageMs, clock }: VenueHealthDeps) {
  let lastOkMs = 0
  let failures = 0
  const check = async () => {
    lastOkMs = Math.max(lastOkMs, lastMessageMs())
    if (clock.now().getTime() - lastOkMs < pingEveryMs) return
    await ping().then(
      () => {
        lastOkMs = clock.now().getTime()
        failures = 0
      },
      (fault: unknown) => {
        // What the gateway's own budget refused says nothing of the venue.
        if (!(fault instanceof Fault) || fault.extras.budget === undefined) failures += 1
      },
    )
  }
  const timer = setInterval(() => void check(), pingEveryMs)
  timer.unref()
  void check()
  return {
    state(): UpstreamFacts {
      const okMs = Math.max(lastOkMs, lastMessageMs())
      // Nobody has heard of it yet: it may be slow, and after a failure it counts as down.
      if (okMs === 0) return { status: failures > 0 ? 'down' : 'degraded', lastOkAt: null }
      const isLate = clock.now().getTime() - okMs > downMs
      return { status: isLate ? 'down' : failures > 0 ? 'degraded' : 'ok', lastOkAt: new Date(okMs) }
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}
