import { indicatorAt } from './indicator-list.ts'
import type { IndicatorSet } from './indicators.ts'

/** The regime of a market; `unknown` means that there are too few candles. */
export type Regime = 'up' | 'down' | 'range' | 'unknown'

export const trendAdxMin = 25

/** A trend needs an ADX of at least 25 and averages in the order of the trend; anything else is a range. */
export function regimeAt(set: IndicatorSet, at: number): Regime {
  const adx = indicatorAt(set, 'adx_14', at)
  const fast = indicatorAt(set, 'ema_12', at)
  const middle = indicatorAt(set, 'ema_26', at)
  const slow = indicatorAt(set, 'ema_50', at)
  if (adx === undefined || fast === undefined || middle === undefined || slow === undefined) return 'unknown'
  if (adx < trendAdxMin) return 'range'
  if (fast > middle && middle > slow) return 'up'
  return fast < middle && middle < slow ? 'down' : 'range'
}
