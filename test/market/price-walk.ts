import { type Candle, type Timeframe, timeframeMs } from '#market/candle.ts'

/** Candles of a seeded random walk, such as a market could have. */

export const walkStartMs = Date.UTC(2026, 0, 5)

export function randomOf(seed: number): () => number {
  let state = (seed * 2_654_435_761 + 1) >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 4_294_967_296
  }
}

type Walk = {
  seed: number
  count: number
  timeframe?: Timeframe
  price?: number
  /** The mean move of a candle, as a fraction. */
  drift?: number
  volatility?: number
}

export function priceWalk({
  seed,
  count,
  timeframe = '1h',
  price = 100,
  drift = 0,
  volatility = 0.01,
}: Walk): Candle[] {
  const next = randomOf(seed)
  const normal = () => (next() + next() + next() + next() - 2) * 1.7
  const spanMs = timeframeMs[timeframe]
  let close = price
  return Array.from({ length: count }, (_, at) => {
    const open = close * (1 + normal() * volatility * 0.05)
    close = Math.max(0.01, open * (1 + drift + normal() * volatility))
    const startMs = walkStartMs + at * spanMs
    return {
      startMs,
      endMs: startMs + spanMs,
      open,
      high: Math.max(open, close) * (1 + next() * volatility * 0.6),
      low: Math.min(open, close) * (1 - next() * volatility * 0.6),
      close,
      volume: 500 + next() * 2_000,
    }
  })
}
