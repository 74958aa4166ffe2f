import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Overload } from './load-shedding.ts'
import type { LimitName, RateLimits } from './rate-limits.ts'

/** The utilization of the event loop above which the principals with the most requests are paused. */
const busyMax = 0.75
const sampleMs = 100
const windowMs = 10_000
/** This many requests of one principal within one window are never paused. */
const freeMax = 30
const pauseMsMin = 5
const pauseMsMax = 500

type Window = { counts: Map<string, number>; total: number }
const emptyWindow = (): Window => ({ counts: new Map(), total: 0 })
const meanOf = ({ counts, total }: Window): number => total / (counts.size || 1)

/**
 * While the event loop is busy, the principals that ask most are paused before each request, longer and longer
 * until it is no longer busy. A principal that rarely asks is answered as quickly as on a quiet instance, and
 * one that is alone is never paused.
 */
export function createPacer(random: () => number = Math.random) {
  let current = emptyWindow()
  let earlier = emptyWindow()
  let pauseMs = 0

  const isHeavy = (principal: string): boolean => {
    if (current.counts.size < 2 && earlier.counts.size < 2) return false
    const count = Math.max(current.counts.get(principal) ?? 0, earlier.counts.get(principal) ?? 0)
    return count > Math.max(freeMax, meanOf(current) / 2, meanOf(earlier) / 2)
  }

  return {
    isHeavy,
    /** Sets the pause by the event loop's utilization since the last call, a number from 0 to 1. */
    record(utilization: number): void {
      const excess = utilization - busyMax
      const next = Math.max(pauseMs, excess > 0 ? pauseMsMin : 0) * (1 + excess / 2)
      pauseMs = next < 1 ? 0 : Math.min(pauseMsMax, next)
    },
    nextWindow(): void {
      earlier = current
      current = emptyWindow()
    },
    /** Counts a request, and returns its delay in milliseconds: a random one, so that few requests begin together. */
    pauseOf(principal: string): number {
      current.counts.set(principal, (current.counts.get(principal) ?? 0) + 1)
      current.total += 1
      return pauseMs > 0 && isHeavy(principal) ? pauseMs * (0.5 + random()) : 0
    },
  }
}

export type Pacing = {
  /** Counts a request and returns its pause, or undefined if the request is not paused. Exits are never paused. */
  pause(principal: string, rate: LimitName): Promise<void> | undefined
  /** Returns whether a principal is one of those that are paused while the event loop is busy. */
  isHeavy(principal: string): boolean
  close(): void
}

export function startPacing(): Pacing {
  const pacer = createPacer()
  let last = performance.eventLoopUtilization()
  const sample = setInterval(() => {
    const now = performance.eventLoopUtilization()
    pacer.record(performance.eventLoopUtilization(now, last).utilization)
    last = now
  }, sampleMs).unref()
  const turn = setInterval(pacer.nextWindow, windowMs).unref()
  return {
    pause(principal, rate) {
      const pauseMs = pacer.pauseOf(principal)
      return pauseMs > 0 && rate !== 'exit' ? delay(pauseMs) : undefined
    },
    isHeavy: pacer.isHeavy,
    close() {
      clearInterval(sample)
      clearInterval(turn)
    },
  }
}

/**
 * Rate limits that pause each request once, over whatever transport it arrives, and even if it is then refused. While
 * the instance is overloaded, they refuse heavy callers.
 */
export const pacedLimits = (
  limits: RateLimits,
  { pacing, load }: { pacing: Pacing; load: Pick<Overload, 'refusal'> },
): RateLimits => ({
  consume(name, key, points) {
    const counted = () => {
      const fault = load.refusal(name, { isHeavy: pacing.isHeavy(key) })
      return fault ? { fault } : limits.consume(name, key, points)
    }
    return pacing.pause(key, name)?.then(counted) ?? counted()
  },
})
