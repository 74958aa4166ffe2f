import { createLru } from '#kernel/async/create-lru.ts'
import { monotonicMs } from '#kernel/clock.ts'

/**
 * Chooses the user whose share of quotes pays for a quote that decides orders of several users. If a share is used
 * up, another owner is asked, so that one user's quotes do not keep another user's order from firing.
 */

export type QuoteOwners = {
  /**
   * Returns some of the users to whom the quote can be charged now, in the given order if it was charged to nobody
   * before. Otherwise they are ordered by id, beginning with the last user whose quote was answered, or with the one
   * after the last user whose quote failed, so that each of them is tried before any fails twice.
   */
  inTurn(quote: string, userIds: readonly string[]): string[]
  answered(quote: string, userId: string): void
  /** Records a failure; `waitMs` is the time until the user's share has a quote again. */
  failed(quote: string, userId: string, waitMs: number): void
}

/** The most owners that are tried for one quote in a round; only the last one reaches a provider. */
const triesMax = 5
/** The longest pause of a user whose share is used up: another provider may have a quote in that share sooner. */
const waitMsMax = 10_000
const usersMax = 10_000
const quotesMax = 20_000

type LastAsked = { userId: string; isAnswered: boolean }

export function createQuoteOwners(nowMs: () => number = monotonicMs): QuoteOwners {
  /** The time from which each user can be asked again. */
  const restUntilMs = createLru<string, number>(usersMax)
  const lastAsked = createLru<string, LastAsked>(quotesMax)
  return {
    inTurn(quote, userIds) {
      const now = nowMs()
      const ready = userIds.filter((userId) => (restUntilMs.peek(userId) ?? 0) <= now)
      const last = lastAsked.peek(quote)
      if (!last) return ready.slice(0, triesMax)
      const isNext = (userId: string): boolean =>
        userId > last.userId || (last.isAnswered && userId === last.userId)
      const ordered = ready.toSorted((one, other) => (one < other ? -1 : 1))
      const { next = [], later = [] } = Object.groupBy(ordered, (each) => (isNext(each) ? 'next' : 'later'))
      return [...next, ...later].slice(0, triesMax)
    },
    answered(quote, userId) {
      restUntilMs.delete(userId)
      lastAsked.set(quote, { userId, isAnswered: true })
    },
    failed(quote, userId, waitMs) {
      restUntilMs.set(userId, nowMs() + Math.min(waitMs, waitMsMax))
      lastAsked.set(quote, { userId, isAnswered: false })
    },
  }
}
