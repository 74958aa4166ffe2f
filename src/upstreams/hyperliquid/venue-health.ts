import { repeat } from '#kernel/async/repeat.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'

type VenueHealthDeps = {
  /** Sends a cheap request to the venue. */
  ping: () => Promise<unknown>
  /** Time of the last stream message in milliseconds; 0 before the first. */
  lastMessageMs: () => number
  clock: Clock
}

type VenueState = { status: 'ok' | 'degraded' | 'down'; lastOkAt: Date | null }

const pingEveryMs = 10_000
const downMs = 35_000

/** A stream message proves that the venue is up; without one, a cheap request does. */
export function openVenueHealth({ ping, lastMessageMs, clock }: VenueHealthDeps) {
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
        // A rejection by the gateway's own rate budget is no evidence about the venue.
        if (!(fault instanceof Fault) || fault.extras.budget === undefined) failures += 1
      },
    )
  }
  let checking: AsyncDisposable | undefined
  return {
    start(): void {
      checking = repeat(check, { everyMs: pingEveryMs, immediately: true })
    },
    state(): VenueState {
      const okMs = Math.max(lastOkMs, lastMessageMs())
      // Before the first contact, the venue counts as degraded, and after a failed request as down.
      if (okMs === 0) return { status: failures > 0 ? 'down' : 'degraded', lastOkAt: null }
      const isLate = clock.now().getTime() - okMs > downMs
      return { status: isLate ? 'down' : failures > 0 ? 'degraded' : 'ok', lastOkAt: new Date(okMs) }
    },
    [Symbol.asyncDispose]: async () => checking?.[Symbol.asyncDispose](),
  }
}
