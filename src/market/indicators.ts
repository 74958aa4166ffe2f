import { blank, ema, meanOf, type Series, sma, wilder, windowed } from './averages.ts'
import { type Candle, dayMs } from './candle.ts'

/** The indicators follow their usual definitions; each has one value per candle. */

const closesOf = (candles: readonly Candle[]): number[] => candles.map(({ close }) => close)
const pairwise = (a: Series, b: Series, join: (left: number, right: number) => number): number[] =>
  a.map((value, at) => join(value, b[at] ?? Number.NaN))
const maxOf = (window: Series): number => Math.max(...window)
const minOf = (window: Series): number => Math.min(...window)

export function rsi(closes: Series, period: number): number[] {
  const moves = closes.map((close, at) => (at === 0 ? Number.NaN : close - (closes[at - 1] ?? Number.NaN)))
  const gains = wilder(
    moves.map((move) => (move > 0 ? move : move * 0)),
    period,
  )
  const losses = wilder(
    moves.map((move) => (move < 0 ? -move : move * 0)),
    period,
  )
  return pairwise(gains, losses, (gain, loss) => {
    if (gain === 0 && loss === 0) return 50
    return loss === 0 ? 100 : 100 - 100 / (1 + gain / loss)
  })
}

export type Macd = { line: Series; signal: Series; histogram: Series }

export function macd(closes: Series, fast: number, slow: number, smoothing: number): Macd {
  const line = pairwise(ema(closes, fast), ema(closes, slow), (a, b) => a - b)
  const signal = ema(line, smoothing)
  return { line, signal, histogram: pairwise(line, signal, (a, b) => a - b) }
}

export type Bands = { upper: Series; middle: Series; lower: Series }

const deviationOf = (window: Series): number => {
  const mean = meanOf(window)
  return Math.sqrt(meanOf(window.map((value) => (value - mean) * (value - mean))))
}

export function bollinger(closes: Series, period: number, width: number): Bands {
  const middle = sma(closes, period)
  const deviation = windowed(closes, period, deviationOf)
  return {
    upper: pairwise(middle, deviation, (mean, sd) => mean + width * sd),
    middle,
    lower: pairwise(middle, deviation, (mean, sd) => mean - width * sd),
  }
}

const trueRanges = (candles: readonly Candle[]): number[] =>
  candles.map(({ high, low }, at) => {
    const before = candles[at - 1]?.close
    return before === undefined ? high - low : Math.max(high, before) - Math.min(low, before)
  })

export const atr = (candles: readonly Candle[], period: number): number[] =>
  wilder(trueRanges(candles), period)

export type Directional = { adx: Series; plus: Series; minus: Series }

export function adx(candles: readonly Candle[], period: number): Directional {
  const moves = candles.map(({ high, low }, at) => {
    const before = candles[at - 1]
    if (!before) return { up: Number.NaN, down: Number.NaN, range: Number.NaN }
    const [up, down] = [high - before.high, before.low - low]
    return {
      up: up > down && up > 0 ? up : 0,
      down: down > up && down > 0 ? down : 0,
      range: Math.max(high, before.close) - Math.min(low, before.close),
    }
  })
  const range = wilder(
    moves.map((move) => move.range),
    period,
  )
  const share = (values: number[]) =>
    pairwise(wilder(values, period), range, (value, all) => (all === 0 ? 0 : (100 * value) / all))
  const plus = share(moves.map(({ up }) => up))
  const minus = share(moves.map(({ down }) => down))
  const dx = pairwise(plus, minus, (a, b) => (a + b === 0 ? 0 : (100 * Math.abs(a - b)) / (a + b)))
  return { adx: wilder(dx, period), plus, minus }
}

export type Stochastic = { k: Series; d: Series }

export function stochastic(
  candles: readonly Candle[],
  period: number,
  smoothing: { k: number; d: number },
): Stochastic {
  const { upper, lower } = donchian(candles, period)
  const raw = candles.map(({ close }, at) => {
    const [top, bottom] = [upper[at] ?? Number.NaN, lower[at] ?? Number.NaN]
    return top === bottom ? 50 : (100 * (close - bottom)) / (top - bottom)
  })
  const k = sma(raw, smoothing.k)
  return { k, d: sma(k, smoothing.d) }
}

/** The VWAP of a day begins again with each UTC day; it is NaN until something was traded. */
export function dailyVwap(candles: readonly Candle[]): number[] {
  let day = Number.NaN
  let [worth, volume] = [0, 0]
  return candles.map((candle) => {
    const today = Math.floor(candle.startMs / dayMs)
    if (today !== day) [day, worth, volume] = [today, 0, 0]
    worth += ((candle.high + candle.low + candle.close) / 3) * candle.volume
    volume += candle.volume
    return volume === 0 ? Number.NaN : worth / volume
  })
}

export function obv(candles: readonly Candle[]): number[] {
  let sum = 0
  return candles.map(({ close, volume }, at) => {
    const before = candles[at - 1]?.close ?? close
    if (close > before) sum += volume
    if (close < before) sum -= volume
    return sum
  })
}

/** Returns the highest high and the lowest low of the last `period` candles, the candle itself included. */
export function donchian(candles: readonly Candle[], period: number): Bands {
  const upper = windowed(
    candles.map(({ high }) => high),
    period,
    maxOf,
  )
  const lower = windowed(
    candles.map(({ low }) => low),
    period,
    minOf,
  )
  return { upper, middle: pairwise(upper, lower, (a, b) => (a + b) / 2), lower }
}

export type Supertrend = { line: Series; isUp: readonly boolean[] }

export function supertrend(candles: readonly Candle[], period: number, width: number): Supertrend {
  const range = atr(candles, period)
  const line = blank(candles.length)
  const isUp: boolean[] = candles.map(() => false)
  let last: { upper: number; lower: number; close: number; isUp: boolean } | undefined
  for (const [at, { high, low, close }] of candles.entries()) {
    const reach = width * (range[at] ?? Number.NaN)
    if (Number.isNaN(reach)) continue
    let [upper, lower] = [(high + low) / 2 + reach, (high + low) / 2 - reach]
    if (last && upper >= last.upper && last.close <= last.upper) upper = last.upper
    if (last && lower <= last.lower && last.close >= last.lower) lower = last.lower
    const rises = last?.isUp ? close >= lower : close > upper
    last = { upper, lower, close, isUp: rises }
    line[at] = rises ? lower : upper
    isUp[at] = rises
  }
  return { line, isUp }
}

export type IndicatorSet = {
  sma20: Series
  sma50: Series
  sma200: Series
  ema12: Series
  ema26: Series
  ema50: Series
  rsi: Series
  macd: Macd
  bollinger: Bands
  atr: Series
  directional: Directional
  stochastic: Stochastic
  vwap: Series
  obv: Series
  donchian: Bands
  supertrend: Supertrend
}

export function computeIndicators(candles: readonly Candle[]): IndicatorSet {
  const closes = closesOf(candles)
  return {
    sma20: sma(closes, 20),
    sma50: sma(closes, 50),
    sma200: sma(closes, 200),
    ema12: ema(closes, 12),
    ema26: ema(closes, 26),
    ema50: ema(closes, 50),
    rsi: rsi(closes, 14),
    macd: macd(closes, 12, 26, 9),
    bollinger: bollinger(closes, 20, 2),
    atr: atr(candles, 14),
    directional: adx(candles, 14),
    stochastic: stochastic(candles, 14, { k: 3, d: 3 }),
    vwap: dailyVwap(candles),
    obv: obv(candles),
    donchian: donchian(candles, 20),
    supertrend: supertrend(candles, 10, 3),
  }
}
