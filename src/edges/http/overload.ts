import { performance } from 'node:perf_hooks'
import { Fault } from '#kernel/fault.ts'
import type { RateClass } from '#kernel/operation.ts'

const sampleMs = 1_000
/** Samples above the limit before an operation that moves money is turned away. */
const moneyPatience = 5

export type Overload = { refusal(rate: RateClass): Fault | undefined; close(): void }

/**
 * A saturated event loop answers everyone late; turning some away keeps the rest whole. Ways out (cancel, close,
 * withdraw) are never shed, money only after the load has lasted.
 */
export function overload(utilisationMax: number, sample: () => number = meter()): Overload {
  let above = 0
  const timer =
    utilisationMax < 1
      ? setInterval(() => {
          above = sample() > utilisationMax ? above + 1 : 0
        }, sampleMs).unref()
      : undefined
  return {
    refusal(rate) {
      const patience = rate === 'money' ? moneyPatience : 1
      if (rate === 'exit' || above < patience) return undefined
      return new Fault('overloaded', 'The server is over its capacity; try again shortly', {
        extras: { retry_after: 1 },
      })
    },
    close: () => clearInterval(timer),
  }
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
