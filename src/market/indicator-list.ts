import type { Series } from './averages.ts'
import type { IndicatorSet } from './indicators.ts'

/** An indicator has no value with fewer candles than five times `period`, which is the longest period in it. */
export type IndicatorId =
  | 'sma_20'
  | 'sma_50'
  | 'sma_200'
  | 'ema_12'
  | 'ema_26'
  | 'ema_50'
  | 'rsi_14'
  | 'macd'
  | 'macd_signal'
  | 'macd_histogram'
  | 'bollinger_upper'
  | 'bollinger_middle'
  | 'bollinger_lower'
  | 'atr_14'
  | 'adx_14'
  | 'plus_di_14'
  | 'minus_di_14'
  | 'stochastic_k'
  | 'stochastic_d'
  | 'vwap_day'
  | 'obv'
  | 'donchian_upper'
  | 'donchian_lower'
  | 'supertrend'

type Row = {
  label: string
  unit: 'price' | 'index' | 'size'
  period: number
  series: (set: IndicatorSet) => Series
}

export const indicatorList: Readonly<Record<IndicatorId, Row>> = {
  sma_20: { label: 'SMA 20', unit: 'price', period: 20, series: (set) => set.sma20 },
  sma_50: { label: 'SMA 50', unit: 'price', period: 50, series: (set) => set.sma50 },
  sma_200: { label: 'SMA 200', unit: 'price', period: 200, series: (set) => set.sma200 },
  ema_12: { label: 'EMA 12', unit: 'price', period: 12, series: (set) => set.ema12 },
  ema_26: { label: 'EMA 26', unit: 'price', period: 26, series: (set) => set.ema26 },
  ema_50: { label: 'EMA 50', unit: 'price', period: 50, series: (set) => set.ema50 },
  rsi_14: { label: 'RSI 14', unit: 'index', period: 14, series: (set) => set.rsi },
  macd: { label: 'MACD 12/26', unit: 'price', period: 26, series: (set) => set.macd.line },
  macd_signal: { label: 'MACD signal 9', unit: 'price', period: 35, series: (set) => set.macd.signal },
  macd_histogram: { label: 'MACD histogram', unit: 'price', period: 35, series: (set) => set.macd.histogram },
  bollinger_upper: {
    label: 'Bollinger 20/2 upper',
    unit: 'price',
    period: 20,
    series: (set) => set.bollinger.upper,
  },
  bollinger_middle: {
    label: 'Bollinger 20/2 middle',
    unit: 'price',
    period: 20,
    series: (set) => set.bollinger.middle,
  },
  bollinger_lower: {
    label: 'Bollinger 20/2 lower',
    unit: 'price',
    period: 20,
    series: (set) => set.bollinger.lower,
  },
  atr_14: { label: 'ATR 14', unit: 'price', period: 14, series: (set) => set.atr },
  adx_14: { label: 'ADX 14', unit: 'index', period: 28, series: (set) => set.directional.adx },
  plus_di_14: { label: '+DI 14', unit: 'index', period: 14, series: (set) => set.directional.plus },
  minus_di_14: { label: '-DI 14', unit: 'index', period: 14, series: (set) => set.directional.minus },
  stochastic_k: {
    label: 'Stochastic 14/3/3 K',
    unit: 'index',
    period: 20,
    series: (set) => set.stochastic.k,
  },
  stochastic_d: {
    label: 'Stochastic 14/3/3 D',
    unit: 'index',
    period: 20,
    series: (set) => set.stochastic.d,
  },
  vwap_day: { label: 'VWAP of the day', unit: 'price', period: 1, series: (set) => set.vwap },
  obv: { label: 'OBV', unit: 'size', period: 1, series: (set) => set.obv },
  donchian_upper: {
    label: 'Donchian 20 upper',
    unit: 'price',
    period: 20,
    series: (set) => set.donchian.upper,
  },
  donchian_lower: {
    label: 'Donchian 20 lower',
    unit: 'price',
    period: 20,
    series: (set) => set.donchian.lower,
  },
  supertrend: { label: 'Supertrend 10/3', unit: 'price', period: 10, series: (set) => set.supertrend.line },
}

export const isIndicator = (id: string): id is IndicatorId => Object.hasOwn(indicatorList, id)
export const indicatorIds = Object.keys(indicatorList).filter(isIndicator)

export const candlesMinOf = (id: IndicatorId): number => 5 * indicatorList[id].period

/** Returns the value at a candle, or undefined if too few candles came before it. */
export function indicatorAt(set: IndicatorSet, id: IndicatorId, at: number): number | undefined {
  if (at + 1 < candlesMinOf(id)) return undefined
  const value = indicatorList[id].series(set)[at]
  return value === undefined || Number.isNaN(value) ? undefined : value
}

export function latestIndicators(set: IndicatorSet): Partial<Record<IndicatorId, number>> {
  const last = set.obv.length - 1
  const found = indicatorIds.flatMap((id) => {
    const value = indicatorAt(set, id, last)
    return value === undefined ? [] : [[id, value] as const]
  })
  return Object.fromEntries(found)
}
