import { createLatch } from '#kernel/async/latch.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import { isRateLimited, isRateLimitFault, type JsonRpc, type RpcAnswer, type RpcCall } from './json-rpc.ts'

type Outcome = RpcAnswer | { fault: Fault }
type RepeatOptions = {
  /** The time limit of the calls and their repetitions together. */
  timeoutMs: number
  waitsMs?: readonly number[]
}

/** Repeats the calls that a node refused because of its rate limit, and no others. */
export function repeatRateLimited(rpc: JsonRpc, { timeoutMs, waitsMs = [250, 750] }: RepeatOptions): JsonRpc {
  const send = async (calls: readonly RpcCall[], signal?: AbortSignal): Promise<Outcome[]> => {
    try {
      return await rpc(calls, signal)
    } catch (error) {
      if (!isRateLimitFault(error)) throw error
      return calls.map(() => ({ fault: error }))
    }
  }

  return async (calls, signal) => {
    const endMs = monotonicMs() + timeoutMs
    const outcomes = await send(calls, signal)
    for (const waitMs of waitsMs) {
      const refused = [...outcomes.keys()].filter((index) => isRefused(outcomes[index]!))
      if (refused.length === 0 || monotonicMs() + waitMs >= endMs) break
      await pause(waitMs, signal)
      const repeated = send(
        refused.map((index) => calls[index]!),
        signal,
      )
      const found = await withTimeLimit(repeated, endMs - monotonicMs())
      if (!found) break
      for (const [at, index] of refused.entries()) outcomes[index] = found[at]!
    }
    return outcomes.map(answerOf)
  }
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  using latch = createLatch(signal)
  await latch.wait(ms)
}

const isRefused = (outcome: Outcome): boolean =>
  'fault' in outcome || ('error' in outcome && isRateLimited(outcome.error))

function answerOf(outcome: Outcome): RpcAnswer {
  if ('fault' in outcome) throw outcome.fault
  return outcome
}
