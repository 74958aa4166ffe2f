import { one } from './decimal.ts'
import type { Average, MarketState } from './state.ts'
import { toTick } from './ticks.ts'
import { bookOf, marketFor, midOf, stateOf, type Venue } from './venue.ts'

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** An exponential moving average: sum and weight decay, and each sample weighs its duration. */
export const addSample = (average: Average, sample: number, seconds: number, memorySeconds: number): void => {
  const fade = Math.exp(-seconds / memorySeconds)
  average.sum = average.sum * fade + sample * seconds
  average.weight = average.weight * fade + seconds
}

export const averageOf = ({ sum, weight }: Average, otherwise: number): number =>
  weight === 0 ? otherwise : sum / weight

export const basisMemorySeconds = 150
export const smoothMemorySeconds = 30

/** The three inputs of the mark: without other exchanges, the third is the smoothed second. */
export const markInputs = (state: MarketState, bid: number, ask: number): [number, number, number] => {
  const book = median([bid, ask, state.last])
  return [state.oracle + averageOf(state.basis, 0), book, averageOf(state.smooth, book)]
}

export const resetAverages = (state: MarketState, nowMs: number): void => {
  state.basis = { sum: 0, weight: 0 }
  state.smooth = { sum: 0, weight: 0 }
  state.averagedMs = nowMs
}

/** Perpetuals follow the rule above, spot its own middle price. */
export const updateMark = (venue: Venue, asset: number): void => {
  const state = stateOf(venue, asset)
  const market = marketFor(asset)
  if (state.pinned) {
    state.mark = state.oracle
    return
  }
  const mid = midOf(venue, asset)
  if (market.kind === 'spot' || mid === undefined) {
    state.mark = Math.round(mid ?? state.oracle)
    return
  }
  const book = bookOf(venue, asset)
  const bid = book.best({ buy: true }) as number
  const ask = book.best({ buy: false }) as number
  const seconds = Math.min(3_600, (venue.state.nowMs - state.averagedMs) / 1000)
  if (seconds > 0) {
    addSample(state.basis, mid - state.oracle, seconds, basisMemorySeconds)
    addSample(state.smooth, median([bid, ask, state.last]), seconds, smoothMemorySeconds)
    state.averagedMs = venue.state.nowMs
  }
  // Marks are finer than ticks upstream too, but never finer than the market's own decimals.
  const finest = 10 ** (8 - Math.max(0, market.priceDecimals - market.sizeDecimals))
  const mark = Math.round(median(markInputs(state, bid, ask)) / finest) * finest
  state.mark = Math.max(finest, mark)
}

export const setOracle = (state: MarketState, price: number): void => {
  state.previousOracle = state.oracle
  state.oracle = Math.max(1, price)
}

/** Price in 1e-8 units from a plain number of a test. */
export const pricedAt = (asset: number, usd: number): number =>
  toTick(Math.round(usd * one), marketFor(asset))
