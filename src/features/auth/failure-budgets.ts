import { createWindowCounter } from '#kernel/async/window-counter.ts'
import type { Clock } from '#kernel/clock.ts'
import { type BudgetOwner, budgetSpent } from '#kernel/contract/fault.ts'

type AttemptsDeps = { clock: Clock; windowMs?: number; entriesMax?: number }
export type FailureBudget = { key: string; failuresMax: number; owner: BudgetOwner }

export type Attempts = {
  /**
   * Counts a failure in every budget, and throws if one is exceeded. Call it only after a credential proved wrong, so
   * that failures of other callers never block a correct credential.
   */
  fail(budgets: FailureBudget[]): void
}

/** Counts failures in the memory of this instance only. The oldest counter is evicted at `entriesMax`. */
export function createAttempts({ clock, windowMs = 60_000, entriesMax = 20_000 }: AttemptsDeps): Attempts {
  const failures = createWindowCounter({ keysMax: entriesMax, nowMs: () => clock.now().getTime() })
  return {
    fail(counted) {
      const windows = counted.map((each) => ({ ...each, ...failures.add(each.key, windowMs) }))
      const over = windows.find(({ count, failuresMax }) => count > failuresMax)
      if (!over) return
      const seconds = Math.max(1, Math.ceil((over.endsAtMs - clock.now().getTime()) / 1000))
      const sentence = `Too many failed attempts of this ${over.owner}; retry in ${seconds} s`
      throw budgetSpent('rate_limited', sentence, {
        budget: 'failed_proofs',
        owner: over.owner,
        retryAfterSeconds: seconds,
      })
    },
  }
}
