import type { Decision } from '#market/strategies/strategy.ts'
import type { SkipReason } from '#store/tables/strategies.ts'

/** Why a decision that did nothing counts as a skipped run, and not as one that had nothing to do. */

export type HoldSkip = { reason: SkipReason; code: string; message: string }

const skips: Readonly<Record<string, Omit<HoldSkip, 'message'>>> = {
  insufficient_balance: { reason: 'insufficient_balance', code: 'insufficient_balance' },
  budget: { reason: 'budget', code: 'limit_reached' },
  foreign_position: { reason: 'foreign_position', code: 'conflict' },
  market_closed: { reason: 'market_closed', code: 'market_closed' },
}
const guardPrefix = 'guard_'

export function skipOfHold({ action, reason, figures }: Decision): HoldSkip | undefined {
  if (action !== 'hold') return undefined
  if (reason.startsWith(guardPrefix)) {
    const name = reason.slice(guardPrefix.length)
    return { reason: 'guard', code: 'conflict', message: `The guard \`${name}\` allows no entry now` }
  }
  const skip = skips[reason]
  return skip && { ...skip, message: messageOf(skip.reason, figures) }
}

function messageOf(reason: SkipReason, { required_usd, available_usd }: Decision['figures']): string {
  const amounts =
    required_usd !== undefined && available_usd !== undefined
      ? `: the entry is worth ${required_usd} USD, and ${available_usd} USD are left`
      : ''
  switch (reason) {
    case 'budget':
      return `The budget of the strategy is used up${amounts}`
    case 'foreign_position':
      return 'The account has a position in this market that the strategy has not opened'
    case 'market_closed':
      return 'The market does not trade now'
    default:
      return `The balance does not cover the entry${amounts}`
  }
}
