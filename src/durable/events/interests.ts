/**
 * The interests of the peers. Each instance announces its interests, and repeats that while it has them; the
 * others forget an interest that is not repeated. So no instance has to know which others there are, and one
 * that is stopped, killed or restarted leaves nothing to correct.
 */

/** Users share an interest by the last digits of their id, which are random. */
const userDigits = 4
export const userInterest = (userId: string): string => userId.slice(-userDigits)

/** How long an announced interest counts at the peers. */
export const interestTtlMs = 600_000
export const announceEveryMs = interestTtlMs / 2
/** After a gap announcements may have been missed: everything is published until the peers have answered. */
const answerMs = 5_000

export type Interests = {
  isWanted(interest: string): boolean
  add(interest: string): void
  /** Announcements may have been missed; the peers are being asked. */
  onGap(): void
  sweep(): void
}

export function createInterests(nowMs: () => number): Interests {
  const untilMs = new Map<string, number>()
  // Before the bus is connected, nothing is known about the peers.
  let allUntilMs = Number.POSITIVE_INFINITY
  return {
    isWanted: (interest) => nowMs() < allUntilMs || nowMs() < (untilMs.get(interest) ?? 0),
    add(interest) {
      untilMs.set(interest, nowMs() + interestTtlMs)
    },
    onGap() {
      allUntilMs = nowMs() + answerMs
    },
    sweep() {
      for (const [interest, until] of untilMs) if (until <= nowMs()) untilMs.delete(interest)
    },
  }
}
