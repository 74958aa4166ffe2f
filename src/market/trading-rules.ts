import type { Candle } from './candle.ts'
import { indicatorAt } from './indicator-list.ts'
import type { IndicatorSet } from './indicators.ts'
import { type Regime, regimeAt } from './regime.ts'

/** These rules may propose a trade. Each is a function of closed candles, so a backtest runs exactly the same rule. */

export type Side = 'long' | 'short'
export type RuleId = 'trend' | 'range'
export type Rule = {
  id: RuleId
  /** The rule in words, without digits, because each figure of a report is a claim of its own. */
  text: string
  /** Decides what the rule would do after this candle has closed. */
  decide(candles: readonly Candle[], set: IndicatorSet, at: number): Side | undefined
}

export const stopAtrs = 1.5
export const targetAtrs = 2.5

const crossing = (before: number | undefined, now: number | undefined): 'up' | 'down' | undefined => {
  if (before === undefined || now === undefined) return undefined
  if (before <= 0 && now > 0) return 'up'
  return before >= 0 && now < 0 ? 'down' : undefined
}

export const rules: Readonly<Record<RuleId, Rule>> = {
  trend: {
    id: 'trend',
    text: 'In a trend, enter in its direction when the MACD histogram crosses zero in that direction',
    decide(_candles, set, at) {
      const regime = regimeAt(set, at)
      const cross = crossing(
        indicatorAt(set, 'macd_histogram', at - 1),
        indicatorAt(set, 'macd_histogram', at),
      )
      if (regime === 'up' && cross === 'up') return 'long'
      return regime === 'down' && cross === 'down' ? 'short' : undefined
    },
  },
  range: {
    id: 'range',
    text: 'In a range, enter against a close outside the Bollinger band when the next candles close inside it again',
    decide(candles, set, at) {
      if (regimeAt(set, at) !== 'range') return undefined
      const [before, now] = [candles[at - 1]?.close, candles[at]?.close]
      const lower = [indicatorAt(set, 'bollinger_lower', at - 1), indicatorAt(set, 'bollinger_lower', at)]
      const upper = [indicatorAt(set, 'bollinger_upper', at - 1), indicatorAt(set, 'bollinger_upper', at)]
      if (before === undefined || now === undefined) return undefined
      const isAbove = (price: number, bound: number | undefined) => bound !== undefined && price > bound
      const isBelow = (price: number, bound: number | undefined) => bound !== undefined && price < bound
      if (isBelow(before, lower[0]) && isAbove(now, lower[1])) return 'long'
      return isAbove(before, upper[0]) && isBelow(now, upper[1]) ? 'short' : undefined
    },
  },
}

export const ruleFor = (regime: Regime): Rule | undefined => {
  if (regime === 'unknown') return undefined
  return regime === 'range' ? rules.range : rules.trend
}

export type Exits = { stop: number; target: number }

export const exitsOf = (side: Side, entry: number, atr: number): Exits => {
  const sign = side === 'long' ? 1 : -1
  return { stop: entry - sign * stopAtrs * atr, target: entry + sign * targetAtrs * atr }
}
