import { monotonicMs } from '#kernel/clock.ts'

/**
 * In whose name a quote is asked for that decides orders of several users. It counts against the share of that user:
 * where the share is used up another one is asked, so that one user's quotes keep no order of another one from firing.
 */

export type QuoteOwners = {
  /**
   * Those of the users who can be asked for the quote now, at most a few. As they are given where nobody was asked before;
   * else in the order of their ids, from the one who answered last, or the one after the last who failed. So each of them
   * is asked before any other one fails twice, however many fail.
   */
  inTurn(quote: string, userIds: readonly string[]): string[]
  answered(quote: string, userId: string): void
  /** `waitMs`: until the share of the user has a quote again. */
  failed(quote: string, userId: string, waitMs: number): void
}

/** Of one quote in one round. None but the last one reaches a provider. */
const triesMax = 5
/** Another provider may have a quote of the share sooner. */
const waitMsMax = 10_000
const usersMax = 10_000
const quotesMax = 20_000

type LastAsked = { userId: string; isAnswered: boolean }

export function createQuoteOwners(nowMs: () => number = monotonicMs): QuoteOwners {
  /** By user: when the user can be asked again. */
  const restUntilMs = new Map<string, number>()
  const lastAsked = new Map<string, LastAsked>()
  return {
    inTurn(quote, userIds) {
      const now = nowMs()
      const ready = userIds.filter((userId) => (restUntilMs.get(userId) ?? 0) <= now)
      const last = lastAsked.get(quote)
      if (!last) return ready.slice(0, triesMax)
      const isNext = (userId: string): boolean =>
        userId > last.userId || (last.isAnswered && userId === last.userId)
      const ordered = ready.toSorted((one, other) => (one < other ? -1 : 1))
      const { next = [], later = [] } = Object.groupBy(ordered, (each) => (isNext(each) ? 'next' : 'later'))
      return [...next, ...later].slice(0, triesMax)
    },
    answered(quote, userId) {
      restUntilMs.delete(userId)
      remember(lastAsked, [quote, { userId, isAnswered: true }], quotesMax)
    },
    failed(quote, userId, waitMs) {
      remember(restUntilMs, [userId, nowMs() + Math.min(waitMs, waitMsMax)], usersMax)
      remember(lastAsked, [quote, { userId, isAnswered: false }], quotesMax)
    },
  }
}

function remember<V>(values: Map<string, V>, [key, value]: [string, V], max: number): void {
  values.delete(key)
  values.set(key, value)
  for (const oldest of values.keys()) {
    if (values.size <= max) break
    values.delete(oldest)
  }
}
