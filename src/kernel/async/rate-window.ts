import { backoffMs } from './backoff.ts'

const refusalBackoff = { firstMs: 1_000, maxMs: 60_000 }

export type RateWindowOptions = {
  max: number
  windowMs: number
  /** All weight that was spent within one slot becomes available again at the same time. */
  slotMs: number
}
export type RateWindow = {
  /** Returns the milliseconds until this weight fits below a percentage of the limit; 0 if the weight fits now. */
  waitMs(weight: number, sharePercent: number, nowMs: number): number
  add(weight: number, nowMs: number): void
  /** Records a 429 of the upstream: the window then allows nothing for a while, whatever weight it has counted. */
  refused(nowMs: number, retryAfterMs?: number): void
  answered(): void
  used(nowMs: number): number
}

/** A sliding window of the weight spent at an upstream, so that no window of the upstream exceeds its limit. */
export function createRateWindow({ max, windowMs, slotMs }: RateWindowOptions): RateWindow {
  const slots: { atMs: number; weight: number }[] = []
  let used = 0
  let backoffUntilMs = 0
  let refusals = 0

  const evict = (nowMs: number) => {
    while (slots[0] && slots[0].atMs + windowMs <= nowMs) used -= slots.shift()!.weight
  }

  return {
    waitMs(weight, sharePercent, nowMs) {
      evict(nowMs)
      const backoffLeftMs = Math.max(0, backoffUntilMs - nowMs)
      const limit = Math.max(weight, Math.floor((max * sharePercent) / 100))
      let over = used + weight - limit
      for (const { atMs, weight: freed } of over > 0 ? slots : []) {
        over -= freed
        if (over <= 0) return Math.max(backoffLeftMs, atMs + windowMs - nowMs)
      }
      return backoffLeftMs
    },
    add(weight, nowMs) {
      const last = slots.at(-1)
      used += weight
      if (last && nowMs - last.atMs < slotMs) last.weight += weight
      else slots.push({ atMs: nowMs, weight })
    },
    refused(nowMs, retryAfterMs) {
      const guessMs = backoffMs(refusalBackoff, refusals)
      refusals += 1
      const pauseMs = Math.min(retryAfterMs ?? guessMs, refusalBackoff.maxMs)
      backoffUntilMs = Math.max(backoffUntilMs, nowMs + pauseMs)
    },
    answered() {
      refusals = 0
    },
    used(nowMs) {
      evict(nowMs)
      return used
    },
  }
}
