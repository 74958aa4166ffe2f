import { Fault } from '#kernel/contract/fault.ts'
import { createLru } from './create-lru.ts'
import { createRateWindow, type RateWindow } from './rate-window.ts'

/**
 * The quotes that a provider of routes answers are divided among classes of urgency and users, so that no user takes
 * the quotes that other users need for their exits.
 */

/** `exit` sells what a user holds; `watch` decides whether an order fires, or answers a user who only looks. */
export type QuoteUrgency = 'exit' | 'trade' | 'watch'
/** A request for one quote, which counts against the share of `user`. */
export type QuoteTurn = { user: string; urgency: QuoteUrgency }

export type QuoteLimit = { max: number; windowMs: number }
type QuoteBudgetOptions = QuoteLimit & {
  provider: { name: string; title: string }
  nowMs: () => number
}
export type QuoteBudget = {
  /** Counts a quote; throws `unavailable` with `retry_after` if no quote is left. */
  take(turn: QuoteTurn): void
}

/**
 * The percentage of the limit up to which each class of urgency may use it; the rest is left to more urgent
 * classes.
 */
const classShare: Readonly<Record<QuoteUrgency, number>> = { exit: 100, trade: 75, watch: 50 }
/** The percentage of the limit that one user may use in each class of urgency. */
const userShare: Readonly<Record<QuoteUrgency, number>> = { exit: 40, trade: 25, watch: 25 }
/** The percentage of the limit that one user may use in all classes of urgency together. */
const userShareOfAll = 60
/** Up to this percentage, a user's exits may use the part reserved for exits; further ones count as trades. */
const lightShare = 10
const usersMax = 10_000
const slots = 240

const className: Readonly<Record<QuoteUrgency, string>> = {
  exit: 'sales',
  trade: 'other swaps',
  watch: 'orders and dry runs',
}

export function createQuoteBudget({ max, windowMs, provider, nowMs }: QuoteBudgetOptions): QuoteBudget {
  const slotMs = windowMs / slots
  const open = (percent: number) =>
    createRateWindow({ max: Math.floor((max * percent) / 100), windowMs: windowMs + slotMs, slotMs })
  const all = open(100)
  const windows = createLru<string, RateWindow>(usersMax)
  const windowOf = (user: string, name: QuoteUrgency | 'all'): RateWindow => {
    const key = `${name}:${user}`
    const window = windows.get(key) ?? open(name === 'all' ? userShareOfAll : userShare[name])
    windows.set(key, window)
    return window
  }

  const classOf = ({ user, urgency }: QuoteTurn, now: number): QuoteUrgency => {
    if (urgency !== 'exit') return urgency
    return windowOf(user, 'exit').used(now) + 1 <= Math.max(1, (max * lightShare) / 100) ? 'exit' : 'trade'
  }
  const faultOf = (waitMs: number, urgency: QuoteUrgency, scope: 'account' | 'gateway') => {
    const seconds = Math.max(1, Math.ceil(waitMs / 1_000))
    const exhausted = scope === 'account' ? 'share of this account' : 'part'
    return new Fault(
      'unavailable',
      `The gateway's budget of quotes at ${provider.title} is used up: none is left in the ${exhausted} for ${className[urgency]}. Nothing was sent; try again in ${seconds} s`,
      {
        extras: {
          upstream: provider.name,
          retry_after: seconds,
          budget: 'quotes',
          budget_class: urgency,
          budget_of: scope,
        },
      },
    )
  }

  return {
    take(turn) {
      const { user, urgency } = turn
      const now = nowMs()
      const [own, ofAll] = [windowOf(user, urgency), windowOf(user, 'all')]
      const ownMs = Math.max(own.waitMs(1, 100, now), ofAll.waitMs(1, 100, now))
      const allMs = all.waitMs(1, classShare[classOf(turn, now)], now)
      if (ownMs > 0 || allMs > 0)
        throw faultOf(Math.max(ownMs, allMs), urgency, ownMs > allMs ? 'account' : 'gateway')
      for (const window of [all, own, ofAll]) window.add(1, now)
    },
  }
}

/** Returns the milliseconds until the user's share has a quote again, or undefined for an error with another cause. */
export function shareWaitMs(error: unknown): number | undefined {
  if (!(error instanceof Fault)) return undefined
  const { budget, budget_of: scope, retry_after: seconds } = error.extras
  return budget === 'quotes' && scope === 'account' ? Number(seconds) * 1_000 : undefined
}

export const unlimitedQuotes: QuoteBudget = { take: () => {} }
