import type { BudgetState } from '#invoke/rate-limits.ts'

/** The headers follow the IETF draft of RateLimit headers; a class of operations without a limit gets none. */
export function budgetHeaders(budget: BudgetState | undefined): Record<string, string> {
  if (!budget) return {}
  const { name, points, windowSeconds, left, resetSeconds } = budget
  return {
    'ratelimit-policy': `"${name}";q=${points};w=${windowSeconds}`,
    ratelimit: `"${name}";r=${left};t=${resetSeconds}`,
  }
}
