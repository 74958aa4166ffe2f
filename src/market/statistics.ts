import { meanOf, type Series } from './averages.ts'
import type { Candle } from './candle.ts'

/** The statistics use only + - * / and square roots, which every machine rounds alike. */

export const returnsOf = (closes: Series): number[] =>
  closes.slice(1).map((close, at) => close / (closes[at] ?? Number.NaN) - 1)

/** Returns the standard deviation of a sample, which divides by one less than the count. */
export function deviationOf(values: Series): number {
  if (values.length < 2) return Number.NaN
  const mean = meanOf(values)
  let sum = 0
  for (const value of values) sum += (value - mean) * (value - mean)
  return Math.sqrt(sum / (values.length - 1))
}

export const annualisedVolatility = (returns: Series, perYear: number): number =>
  deviationOf(returns) * Math.sqrt(perYear)

export type Drawdown = { fraction: number; peakAt: number; troughAt: number }

/** Finds the deepest fall from an earlier high, as a positive fraction. */
export function maxDrawdown(values: Series): Drawdown {
  let deepest: Drawdown = { fraction: 0, peakAt: 0, troughAt: 0 }
  let peakAt = 0
  for (const [at, value] of values.entries()) {
    const peak = values[peakAt] ?? value
    if (value > peak) peakAt = at
    else if (1 - value / peak > deepest.fraction)
      deepest = { fraction: 1 - value / peak, peakAt, troughAt: at }
  }
  return deepest
}

function covarianceOf(a: Series, b: Series): number {
  const [meanA, meanB] = [meanOf(a), meanOf(b)]
  let sum = 0
  for (const [at, value] of a.entries()) sum += (value - meanA) * ((b[at] ?? Number.NaN) - meanB)
  return sum / (a.length - 1)
}

/**
 * Returns the beta of a market to another; undefined if the other market did not move, or for fewer than two pairs.
 */
export function betaOf(own: Series, market: Series): number | undefined {
  const variance = covarianceOf(market, market)
  const beta = covarianceOf(own, market) / variance
  return Number.isFinite(beta) ? beta : undefined
}

export function correlationOf(a: Series, b: Series): number | undefined {
  const correlation = covarianceOf(a, b) / Math.sqrt(covarianceOf(a, a) * covarianceOf(b, b))
  return Number.isFinite(correlation) ? Math.max(-1, Math.min(1, correlation)) : undefined
}

/** Returns the closes of two markets at the times that both have, oldest first. */
export function alignedCloses(a: readonly Candle[], b: readonly Candle[]): [number[], number[]] {
  const others = new Map(b.map(({ startMs, close }) => [startMs, close]))
  const pairs = a.flatMap(({ startMs, close }) => {
    const other = others.get(startMs)
    return other === undefined ? [] : [[close, other] as const]
  })
  return [pairs.map(([close]) => close), pairs.map(([, close]) => close)]
}

const hoursPerYear = 8_760
export const carryOf = (hourlyFunding: number): number => hourlyFunding * hoursPerYear

export type Interval = { low: number; high: number }
const z95 = 1.959963984540054

/** Computes Wilson's interval of a share of successes, at 95 %. */
export function wilsonInterval(successes: number, trials: number): Interval | undefined {
  if (trials === 0) return undefined
  const share = successes / trials
  const scale = 1 + (z95 * z95) / trials
  const centre = (share + (z95 * z95) / (2 * trials)) / scale
  const spread =
    (z95 / scale) * Math.sqrt((share * (1 - share)) / trials + (z95 * z95) / (4 * trials * trials))
  // The bounds include the share itself, which rounding would exclude if no trial, or every trial, succeeds.
  return {
    low: Math.max(0, Math.min(share, centre - spread)),
    high: Math.min(1, Math.max(share, centre + spread)),
  }
}

/** Mulberry uses whole numbers of 32 bits, so a seed draws the same everywhere. */
function randomFractions(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const resamples = 2_000

/** Estimates where the mean would be in 95 of 100 repetitions, by drawing from the values with replacement. */
export function bootstrapMean(values: Series, seed: number): Interval | undefined {
  if (values.length === 0) return undefined
  const next = randomFractions(seed)
  const means: number[] = []
  for (let sample = 0; sample < resamples; sample++) {
    let sum = 0
    for (let draw = 0; draw < values.length; draw++) sum += values[Math.floor(next() * values.length)] ?? 0
    means.push(sum / values.length)
  }
  means.sort((a, b) => a - b)
  const at = (share: number) => means[Math.round(share * (resamples - 1))] ?? Number.NaN
  return { low: at(0.025), high: at(0.975) }
}
