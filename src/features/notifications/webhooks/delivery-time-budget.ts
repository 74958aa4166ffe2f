import { createWindowCounter } from '#kernel/async/window-counter.ts'

/**
 * Adds up how long the deliveries of each user take. A user who has spent the budget of a minute comes after all
 * others.
 */
export type DeliveryTime = {
  add(userId: string, ms: number): void
  /** Returns the users who have used up their budget of this minute. */
  spent(): string[]
}

export const budgetMs = 5_000
const windowMs = 60_000
const usersMax = 50_000

export function createDeliveryTime(nowMs: () => number): DeliveryTime {
  const times = createWindowCounter({ keysMax: usersMax, nowMs })
  // The map stays small, because few deliveries run at once, and only few of their users can spend a budget.
  const spentUntilMs = new Map<string, number>()
  return {
    add(userId, ms) {
      const { count, endsAtMs } = times.add(userId, windowMs, ms)
      if (count >= budgetMs) spentUntilMs.set(userId, endsAtMs)
    },
    spent() {
      for (const [userId, untilMs] of spentUntilMs) if (untilMs <= nowMs()) spentUntilMs.delete(userId)
      return [...spentUntilMs.keys()]
    },
  }
}
