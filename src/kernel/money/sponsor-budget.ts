import type { Clock } from '#kernel/clock.ts'
import { type BudgetOwner, Fault } from '#kernel/contract/fault.ts'
import { fromUnits } from './money.ts'

/** The amount that a sponsor pays per user and UTC day. */

const dayMs = 86_400_000

type UsedBudget = {
  name: string
  decimals: number
  budgetUnits: bigint
  usedUnits: bigint
  requiredUnits: bigint
  clock: Clock
}

/** Returns the fault of a transaction that the day's budget does not cover. */
export function sponsorBudgetUsed({ name, decimals, clock, ...units }: UsedBudget): Fault {
  const now = clock.now().getTime()
  const resetMs = dayMs - (now % dayMs)
  const resetAt = new Date(now + resetMs).toISOString()
  return new Fault('rate_limited', `Your daily ${name} is used up; it resets at ${resetAt}`, {
    extras: {
      reason: 'sponsor_budget',
      budget: 'sponsor_gas_per_day',
      owner: 'user' satisfies BudgetOwner,
      limit: fromUnits(units.budgetUnits, decimals),
      used: fromUnits(units.usedUnits, decimals),
      required: fromUnits(units.requiredUnits, decimals),
      full_again_at: resetAt,
      retry_after: Math.ceil(resetMs / 1_000),
    },
  })
}
