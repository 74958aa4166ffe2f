import { createRateWindow, type RateWindow } from '#kernel/async/rate-window.ts'
import { Fault } from '#kernel/contract/fault.ts'

/** The quotes that a provider of routes answers, shared between users: nobody uses up what the exits of others need. */

/**
 * What a quote is for. `exit`: it sells what a user holds; `trade`: any other swap; `watch`: it decides whether an order
 * fires, or a user only looks.
 */
export type QuoteUrgency = 'exit' | 'trade' | 'watch'
/** `user`: whose share the quote is. */
export type QuoteTurn = { user: string; urgency: QuoteUrgency }

export type QuoteLimit = { max: number; windowMs: number }
type QuoteBudgetOptions = QuoteLimit & {
  /** In texts and faults. */
  provider: { name: string; title: string }
  nowMs: () => number
}
export type QuoteBudget = {
  /** Counts a quote; throws `unavailable` with `retry_after` where nothing is left for it. */
  take(turn: QuoteTurn): void
}

/** Percent of the limit up to which each class may use it; the rest is reserved for more urgent ones. */
const classShare: Readonly<Record<QuoteUrgency, number>> = { exit: 100, trade: 75, watch: 50 }
/** Percent of the limit that one user may use in each class. */
const userShare: Readonly<Record<QuoteUrgency, number>> = { exit: 40, trade: 25, watch: 25 }
/** Percent that one user may use in all classes together. */
const userShareOfAll = 60
/** Percent up to which the exits of one user may use the part reserved for exits; further ones count as trades. */
const lightShare = 10
const usersMax = 10_000
/** Parts of a window whose quotes are freed together. */
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
  const windows = new Map<string, RateWindow>()
  const windowOf = (user: string, name: QuoteUrgency | 'all'): RateWindow => {
    const key = `${name}:${user}`
    const window = windows.get(key) ?? open(name === 'all' ? userShareOfAll : userShare[name])
    windows.delete(key)
    windows.set(key, window)
    for (const oldest of windows.keys()) {
      if (windows.size <= usersMax) break
      windows.delete(oldest)
    }
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

/** Time until the share of the asking user has a quote again; undefined for an error of another cause. */
export function shareWaitMs(error: unknown): number | undefined {
  if (!(error instanceof Fault)) return undefined
  const { budget, budget_of: scope, retry_after: seconds } = error.extras
  return budget === 'quotes' && scope === 'account' ? Number(seconds) * 1_000 : undefined
}

/** For a provider without limits, such as the local one. */
export const unlimitedQuotes: QuoteBudget = { take: () => {} }
