import { monotonicMs } from '#kernel/clock.ts'

export type LearnedLimit = {
  value(): number
  lower(to: number): void
}

type LearnedLimitOptions = {
  max: number
  growAfterMs: number
  nowMs?: () => number
}

/**
 * A limit of an upstream that is known only from the upstream's refusals. After `growAfterMs` without a refusal the
 * limit doubles, up to `max`.
 */
export function createLearnedLimit({
  max,
  growAfterMs,
  nowMs = monotonicMs,
}: LearnedLimitOptions): LearnedLimit {
  let limit = max
  let changedMs = 0
  return {
    value() {
      if (limit < max && nowMs() - changedMs >= growAfterMs) {
        limit = Math.min(max, limit * 2)
        changedMs = nowMs()
      }
      return limit
    },
    lower(to) {
      limit = Math.max(1, Math.min(limit, to))
      changedMs = nowMs()
    },
  }
}
