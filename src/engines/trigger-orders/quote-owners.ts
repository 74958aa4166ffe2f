import { monotonicMs } from '#kernel/clock.ts'

/**
 * In whose name a quote is asked for that decides orders of several users. It counts against the share of that user:
 * where the share is used up another one is asked, so that one user's quotes keep no order of another one from firing.
 */

export type QuoteOwners = {
  /**
   * Those of the users who can be asked now, at most a few. A user whose last quote failed comes after all others, and of
   * such users the one whose failure is longest ago comes first.
   */
  inTurn(userIds: readonly string[]): string[]
  /** The users who come after all others. */
  last(): string[]
  answered(userId: string): void
  /** `waitMs`: until the share of the user has a quote again. */
  failed(userId: string, waitMs: number): void
}

/** Of one quote in one round. None but the last one reaches a provider. */
const triesMax = 5
/** Another provider may have a quote of the share sooner. */
const waitMsMax = 10_000
/** Each is compared with each owner where quotes are read. */
const rememberedMax = 200

export function createQuoteOwners(nowMs: () => number = monotonicMs): QuoteOwners {
  /** By user, the latest failure last: when the user can be asked again. */
  const failures = new Map<string, number>()
  return {
    inTurn(userIds) {
      const now = nowMs()
      const places = new Map([...failures.keys()].map((userId, place) => [userId, place]))
      const placeOf = (userId: string): number => places.get(userId) ?? -1
      return userIds
        .filter((userId) => (failures.get(userId) ?? 0) <= now)
        .toSorted((one, other) => placeOf(one) - placeOf(other))
        .slice(0, triesMax)
    },
    last: () => [...failures.keys()],
    answered(userId) {
      failures.delete(userId)
    },
    failed(userId, waitMs) {
      failures.delete(userId)
      failures.set(userId, nowMs() + Math.min(waitMs, waitMsMax))
      for (const oldest of failures.keys()) {
        if (failures.size <= rememberedMax) break
        failures.delete(oldest)
      }
    },
  }
}
