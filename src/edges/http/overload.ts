import { performance } from 'node:perf_hooks'
import { Fault } from '#kernel/fault.ts'
import type { RateClass } from '#kernel/operation.ts'

/** Samples in a row above the limit before an operation that moves money is turned away. */
export const moneyPatience = 5

export type LoadSettings = {
  /** The share of its time that the event loop may be busy; 1 sheds nothing. */
  utilisationMax: number
  everyMs: number
  /** The share since the last call. */
  sample: () => number
}

/**
 * A saturated event loop answers everyone late; turning some away keeps the rest whole. Ways out (cancel, close,
 * withdraw) are never shed, money only after the load has lasted.
 */
export function shedding(utilisationMax: number) {
  let above = 0
  return {
    observe(utilisation: number): void {
      above = utilisation > utilisationMax ? above + 1 : 0
    },
    refusal(rate: RateClass): Fault | undefined {
      const patience = rate === 'money' ? moneyPatience : 1
      if (rate === 'exit' || above < patience) return undefined
      return new Fault('overloaded', 'The server is over its capacity; try again shortly', {
        extras: { retry_after: 1 },
      })
    },
  }
}

export type Overload = { refusal(rate: RateClass): Fault | undefined; close(): void }

export function overload(settings: Partial<LoadSettings> = {}): Overload {
  const { utilisationMax = 0.98, everyMs = 1_000, sample = meter() } = settings
  const { observe, refusal } = shedding(utilisationMax)
  const timer = setInterval(() => observe(sample()), everyMs).unref()
  return { refusal, close: () => clearInterval(timer) }
}

function meter(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}
