/**
 * The topics that other instances listen to. Each instance announces its interests, and repeats them while they
 * last; the others forget an interest that is not repeated. So no instance has to know the others, and a stopped or
 * killed instance leaves nothing to correct.
 */

/** The last digits of a user id, which are random, name an interest; users with the same last digits share it. */
const userDigits = 4
export const userInterest = (userId: string): string => userId.slice(-userDigits)

/** How long other instances remember an announced interest. */
export const interestTtlMs = 600_000
export const announceEveryMs = interestTtlMs / 2
/** How long peers take to announce their interests again after a gap in the bus; till then all hints are sent. */
const answerMs = 5_000

export type Interests = {
  isWanted(interest: string): boolean
  add(interest: string): void
  /** Treats every interest as wanted for a while, because announcements may be lost in a gap of the bus. */
  onGap(): void
  sweep(): void
}

export function createInterests(nowMs: () => number): Interests {
  const untilMs = new Map<string, number>()
  // Before the bus is connected nothing is known about the peers, so every interest counts as wanted.
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
