import { backoffMs } from '#kernel/backoff.ts'
import type { Urgency } from './urgency.ts'

/** Percent of the budget up to which each class may spend; the rest is reserved for more urgent classes. */
const classShare: Readonly<Record<Urgency, number>> = {
  exit: 100,
  work: 90,
  admission: 85,
  view: 40,
  background: 30,
}

/** A little more than the venue's minute, because the venue counts requests on arrival. */
const windowMs = 61_000
const slotMs = 250
const refusalBackoff = { firstMs: 1_000, maxMs: 60_000 }

/** Sliding window of the spent weight, so that no minute of the venue exceeds the budget. */
export function weightWindow(perMinute: number) {
  /** `atMs`: start of the slot. */
  const slots: { atMs: number; weight: number }[] = []
  let used = 0
  let backoffUntilMs = 0
  let refusals = 0

  const evict = (nowMs: number) => {
    while (slots[0] && slots[0].atMs + windowMs <= nowMs) used -= slots.shift()!.weight
  }
  const add = (weight: number, nowMs: number) => {
    const last = slots.at(-1)
    used += weight
    if (last && nowMs - last.atMs < slotMs) last.weight += weight
    else slots.push({ atMs: nowMs, weight })
  }

  return {
    /**
     * Time until the weight is available for the class; 0 where it is available now. `leavesShare`: percent of the
     * budget that the call leaves to others of its class.
     */
    waitMs(weight: number, urgency: Urgency, nowMs: number, leavesShare = 0): number {
      evict(nowMs)
      const backoffLeftMs = Math.max(0, backoffUntilMs - nowMs)
      const limit = Math.max(weight, Math.floor((perMinute * (classShare[urgency] - leavesShare)) / 100))
      let over = used + weight - limit
      for (const { atMs, weight: freed } of over > 0 ? slots : []) {
        over -= freed
        if (over <= 0) return Math.max(backoffLeftMs, atMs + windowMs - nowMs)
      }
      return backoffLeftMs
    },
    add,
    /** Backs off after a 429, which overrides the own count. */
    refused(nowMs: number, retryAfterMs?: number) {
      const guessMs = backoffMs(refusalBackoff, refusals)
      refusals += 1
      const pauseMs = Math.min(retryAfterMs ?? guessMs, refusalBackoff.maxMs)
      backoffUntilMs = Math.max(backoffUntilMs, nowMs + pauseMs)
    },
    answered() {
      refusals = 0
    },
    used(nowMs: number): number {
      evict(nowMs)
      return used
    },
  }
}
