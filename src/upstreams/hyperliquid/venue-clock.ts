/** The venue's clock, extrapolated from a recent reading. */
export type VenueClock = {
  record(timeMs: number): void
  /** Returns the venue's present time, or undefined if the last reading is too old. */
  now(): number | undefined
}

/** A reading serves this long: a busy gateway rarely requests only the time, and deadlines are far longer. */
const freshMs = 2_000

export function createVenueClock(nowMs: () => number): VenueClock {
  let last: { timeMs: number; atMs: number } | undefined
  return {
    record(timeMs) {
      last = { timeMs, atMs: nowMs() }
    },
    now() {
      const ageMs = last ? nowMs() - last.atMs : Number.POSITIVE_INFINITY
      return last && ageMs >= 0 && ageMs <= freshMs ? last.timeMs + ageMs : undefined
    },
  }
}
