import type { Windows } from './candle-columns.ts'
import { decideCondition } from './condition-rule.ts'
import { decideDca } from './dca-rule.ts'
import { positionsExit } from './exit-intents.ts'
import { decideFarming, farmingDayEnd } from './farming-rule.ts'
import { decideRebalance } from './rebalance-rule.ts'
import {
  type Decision,
  type DecisionConfig,
  hold,
  type StrategyConfig,
  type StrategyState,
} from './strategy.ts'

export const assetsOf = (strategy: StrategyConfig): string[] =>
  strategy.type === 'rebalance' ? strategy.targets.map(({ asset }) => asset) : [strategy.asset]

/**
 * Decides what a strategy does on a close. Backtests, paper and live call this function alone; equal arguments give an
 * equal decision.
 */
export function decide(windows: Windows | undefined, state: StrategyState, config: DecisionConfig): Decision {
  const urgent = decideExit(state, config)
  if (urgent) return urgent
  if (!windows) return hold('not_enough_history')
  const { strategy } = config
  switch (strategy.type) {
    case 'dca':
      return decideDca(windows, state, { strategy, markets: config.markets })
    case 'rebalance':
      return decideRebalance(windows, state, { strategy, markets: config.markets })
    case 'condition':
      return decideCondition(windows, state, { strategy, markets: config.markets })
    case 'day_trade_farming':
      return decideFarming(windows, state, { strategy, markets: config.markets })
  }
}

/** Decides whether positions end whatever the candles say: by a guard, or with the day. It needs no window. */
export function decideExit(state: StrategyState, { strategy }: DecisionConfig): Decision | undefined {
  if (state.exit !== undefined) {
    const orders = positionsExit(state)
    return orders.length > 0 ? { action: 'exit', reason: state.exit, figures: {}, orders } : hold('flat')
  }
  if (state.must_flatten) {
    const orders = positionsExit(state)
    return orders.length > 0
      ? { action: 'exit', reason: `guard_${state.blocked_by ?? 'tripped'}`, figures: {}, orders }
      : undefined
  }
  return strategy.type === 'day_trade_farming' ? farmingDayEnd(state, strategy) : undefined
}
