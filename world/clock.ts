/** The clock of the world: the machine's time plus what tests advanced it by. It never goes back. */
export const advanceSecondsMax = 10 * 365 * 86_400

export type WorldClock = {
  nowMs: () => number
  offsetSeconds: () => number
  advance: (seconds: number) => void
}

export const worldClock = (startOffsetSeconds: number): WorldClock => {
  let offset = startOffsetSeconds
  return {
    nowMs: () => Date.now() + offset * 1000,
    offsetSeconds: () => offset,
    advance: (seconds) => {
      offset += seconds
    },
  }
}
