/** A series has one value per candle, and NaN for the first candles, which have no value yet. */
export type Series = readonly number[]

export const blank = (length: number): number[] => Array.from({ length }, () => Number.NaN)

/** Returns the first position of a series with a value, or the length of the series if it has no value. */
export function firstValue(values: Series): number {
  const at = values.findIndex((value) => !Number.isNaN(value))
  return at < 0 ? values.length : at
}

export function meanOf(values: Series): number {
  let sum = 0
  for (const value of values) sum += value
  return sum / values.length
}

export function windowed(values: Series, period: number, fold: (window: Series) => number): number[] {
  const out = blank(values.length)
  for (let at = firstValue(values) + period - 1; at < values.length; at++)
    out[at] = fold(values.slice(at - period + 1, at + 1))
  return out
}

export const sma = (values: Series, period: number): number[] => windowed(values, period, meanOf)

/**
 * Computes an exponential average, which begins with the mean of the first `period` values; `weight` is the weight
 * of the newest value.
 */
function exponential(values: Series, period: number, weight: number): number[] {
  const out = blank(values.length)
  const first = firstValue(values) + period - 1
  if (first >= values.length) return out
  let last = meanOf(values.slice(first - period + 1, first + 1))
  out[first] = last
  for (let at = first + 1; at < values.length; at++) {
    last += ((values[at] ?? Number.NaN) - last) * weight
    out[at] = last
  }
  return out
}

export const ema = (values: Series, period: number): number[] => exponential(values, period, 2 / (period + 1))

/** Wilder's average, by which RSI, ATR and ADX are defined. */
export const wilder = (values: Series, period: number): number[] => exponential(values, period, 1 / period)
