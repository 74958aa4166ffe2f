import type { UpstreamFacts } from '#features/discovery/health.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'

type Needs = {
  /** A cheap question. */
  ask: () => Promise<unknown>
  /** When the stream last told of anything, in milliseconds; 0 before it ever did. */
  heardMs: () => number
  clock: Clock
}

const askEveryMs = 10_000
const downMs = 35_000

/** The stream proves that the venue is there; where it is silent a cheap question does. */
export function venueHealth({ ask, heardMs, clock }: Needs) {
  let lastOkMs = 0
  let failures = 0
  const check = async () => {
    lastOkMs = Math.max(lastOkMs, heardMs())
    if (clock.now().getTime() - lastOkMs < askEveryMs) return
    await ask().then(
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
  const timer = setInterval(() => void check(), askEveryMs)
  timer.unref()
  void check()
  return {
    state(): UpstreamFacts {
      const okMs = Math.max(lastOkMs, heardMs())
      // Nobody has heard of it yet: it may be slow, and after a failure it counts as down.
      if (okMs === 0) return { status: failures > 0 ? 'down' : 'degraded', lastOkAt: null }
      const isLate = clock.now().getTime() - okMs > downMs
      return { status: isLate ? 'down' : failures > 0 ? 'degraded' : 'ok', lastOkAt: new Date(okMs) }
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}
