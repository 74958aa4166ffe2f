import { fromUnits, toMicros, usdDecimals } from '#kernel/money/money.ts'
import type { StrategyState } from '#market/strategies/strategy.ts'
import { type RunConfig, type StrategyRun, stateOf } from '#market/strategies/strategy-run.ts'
import { isForeign, restingSides, type VenueView } from './live-venue.ts'

/** What a live decision reads: the account of the strategy, and what only the venue and the budget say. */

export type VenueFacts = {
  view: VenueView
  /** The markets in which an order of the strategy that opens a position has no end yet. */
  opening: ReadonlySet<string>
  /** What counts against the budget, with what open orders reserve. */
  spentMicros: bigint
}
type Given = {
  atMs: number
  config: RunConfig
  facts: VenueFacts | undefined
  /** Markets in which the strategy has a part that is too small to be closed; no decision acts on it. */
  left: readonly string[]
}

export function liveState(run: StrategyRun, { atMs, config, facts, left }: Given): StrategyState {
  const whole = stateOf(run, atMs, config)
  const state = { ...whole, positions: withoutLeft(whole.positions, left) }
  if (!facts) return state
  const { view, opening, spentMicros } = facts
  const assets = Object.keys(config.decision.markets)
  const sides = restingSides(view.orders)
  // An order without an end may open either size of what it was for, so nothing is added beside it.
  const resting = Object.fromEntries(
    assets.flatMap((asset): [string, readonly ('buy' | 'sell')[]][] => {
      const own = opening.has(asset) ? (['buy', 'sell'] as const) : []
      const all = [...(sides[asset] ?? []), ...own]
      return all.length > 0 ? [[asset, all]] : []
    }),
  )
  const foreign = assets.filter((asset) => {
    const own = whole.positions[asset]
    return isForeign(view.positions.get(asset) ?? '0', own && { isLong: own.side === 'long', size: own.size })
  })
  return { ...state, resting, foreign, budget_left_usd: budgetLeft(state, config, spentMicros) }
}

const withoutLeft = (positions: StrategyState['positions'], left: readonly string[]) =>
  Object.fromEntries(Object.entries(positions).filter(([asset]) => !left.includes(asset)))

/** An entry leaves this part of the available money, a thousandth, for its fees. */
const feeShare = 1_000n

/**
 * Returns what is left of the budget. The account of a strategy began with its budget, so what it has lost, and paid in
 * fees, is no longer there to spend; the money of the user beyond it is not the strategy's.
 */
function budgetLeft(
  { available_usd }: StrategyState,
  { budgetMicros }: RunConfig,
  spentMicros: bigint,
): string | null {
  if (budgetMicros === null) return null
  const available = toMicros(available_usd)
  const owned = available - available / feeShare
  const left = budgetMicros - spentMicros
  const spendable = owned < left ? owned : left
  return fromUnits(spendable > 0n ? spendable : 0n, usdDecimals)
}
