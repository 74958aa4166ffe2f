import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
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
type Given = { atMs: number; config: RunConfig; facts: VenueFacts | undefined }

export function liveState(run: StrategyRun, { atMs, config, facts }: Given): StrategyState {
  const state = stateOf(run, atMs, config)
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
    const own = state.positions[asset]
    return isForeign(view.positions.get(asset) ?? '0', own && { isLong: own.side === 'long', size: own.size })
  })
  return { ...state, resting, foreign, budget_left_usd: budgetLeft(config, spentMicros) }
}

function budgetLeft({ budgetMicros }: RunConfig, spentMicros: bigint): string | null {
  if (budgetMicros === null) return null
  const left = budgetMicros - spentMicros
  return fromUnits(left > 0n ? left : 0n, usdDecimals)
}
