import { createRateWindow } from '#kernel/async/rate-window.ts'
import type { Urgency } from './urgency.ts'

/** The percentage of the budget up to which each class may spend; the rest is reserved for more urgent classes. */
const classShare: Readonly<Record<Urgency, number>> = {
  exit: 100,
  work: 90,
  admission: 85,
  view: 40,
  background: 30,
}

/**
 * The window is one second longer than the venue's minute, because the venue counts a request when it arrives, later
 * than the gateway.
 */
const windowMs = 61_000
const slotMs = 250

export function createWeightWindow(perMinute: number) {
  const window = createRateWindow({ max: perMinute, windowMs, slotMs })
  return {
    ...window,
    /**
     * Returns the time until the weight is available for the class, or 0 if it is available now. `leavesShare` is
     * the percentage of the budget that the call leaves to others of its class.
     */
    waitMs: (weight: number, urgency: Urgency, nowMs: number, leavesShare = 0): number =>
      window.waitMs(weight, classShare[urgency] - leavesShare, nowMs),
  }
}
