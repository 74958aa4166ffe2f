import { monitorEventLoopDelay } from 'node:perf_hooks'
import { budgetSpent, type Fault } from '#kernel/contract/fault.ts'
import type { LimitName } from './rate-limits.ts'

/** After this many samples in a row above the limit, the reads of heavy callers are rejected, and later all but exits. */
const heavySamplesMax = 2
export const samplesMax = 5

export type LoadSettings = {
  /** The maximum mean delay of the event loop; a busy loop without delay sheds nothing. */
  delayMsMax: number
  everyMs: number
  /** Returns the mean delay of the event loop since the last call. */
  sample: () => number
}

/**
 * A late event loop delays every answer; rejecting some keeps the others fast. The reads of the callers that ask most
 * are rejected first, and those of everybody and operations that move money only after the overload has lasted. Exits
 * (cancel, close, withdraw) are never shed.
 */
export function loadShedder(delayMsMax: number) {
  let samplesAbove = 0
  return {
    record(delayMs: number): void {
      samplesAbove = delayMs > delayMsMax ? samplesAbove + 1 : 0
    },
    refusal(rate: LimitName, { isHeavy }: { isHeavy: boolean }): Fault | undefined {
      const samplesMin = isHeavy && rate !== 'money' ? heavySamplesMax : samplesMax
      if (rate === 'exit' || samplesAbove < samplesMin) return undefined
      return budgetSpent('overloaded', 'This instance is over its capacity; try again in 1 s', {
        budget: 'event_loop',
        owner: 'instance',
        retryAfterSeconds: 1,
      })
    },
  }
}

export type Overload = {
  refusal(rate: LimitName, caller: { isHeavy: boolean }): Fault | undefined
  close(): void
}

export function createOverload(settings: Partial<LoadSettings> = {}): Overload {
  const { delayMsMax = 250, everyMs = 1_000 } = settings
  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()
  const meter = () => {
    const meanMs = delays.mean / 1e6
    delays.reset()
    return Number.isNaN(meanMs) ? 0 : meanMs
  }
  const { sample = meter } = settings
  const { record, refusal } = loadShedder(delayMsMax)
  const timer = setInterval(() => record(sample()), everyMs).unref()
  return {
    refusal,
    close() {
      clearInterval(timer)
      delays.disable()
    },
  }
}
