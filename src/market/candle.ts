/**
 * Candles as numbers. Only this folder calculates with floats: statistics have no exact value, and a level that becomes
 * an order passes through decimal text and the tick of its market.
 */
export type Candle = {
  startMs: number
  /** The first millisecond after the candle. */
  endMs: number
  open: number
  high: number
  low: number
  close: number
  volume: number
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs
const yearMs = 365 * dayMs

export const timeframeMs = {
  '15m': 15 * minuteMs,
  '30m': 30 * minuteMs,
  '1h': hourMs,
  '2h': 2 * hourMs,
  '4h': 4 * hourMs,
  '8h': 8 * hourMs,
  '12h': 12 * hourMs,
  '1d': dayMs,
} as const
export type Timeframe = keyof typeof timeframeMs
/** The lengths of the candles that are stored. Reports use those from 15 minutes on. */
export const candleSpanMs = {
  '1m': minuteMs,
  '3m': 3 * minuteMs,
  '5m': 5 * minuteMs,
  ...timeframeMs,
} as const
export type CandleSpan = keyof typeof candleSpanMs
export const candleSpans = Object.keys(candleSpanMs) as CandleSpan[]
export const isTimeframe = (text: string): text is Timeframe => Object.hasOwn(timeframeMs, text)

export const periodsPerYear = (timeframe: Timeframe): number => yearMs / timeframeMs[timeframe]

/** A candle as the venue states it, in decimal text. */
export type CandleRow = {
  start: string
  open: string
  high: string
  low: string
  close: string
  volume: string
}

export type History = {
  timeframe: Timeframe
  /** Contains only closed candles, oldest first, and each start once. */
  candles: readonly Candle[]
  gaps: number
  /** How many rows were left out because they are no valid candles, such as a row whose high is below its low. */
  rejected: number
}

function candleOf(row: CandleRow, spanMs: number): Candle | undefined {
  const startMs = Date.parse(row.start)
  const [open, high, low, close, volume] = [row.open, row.high, row.low, row.close, row.volume].map(Number)
  const candle = { startMs, endMs: startMs + spanMs, open, high, low, close, volume } as Candle
  const isOrdered =
    candle.low > 0 &&
    candle.low <= Math.min(candle.open, candle.close) &&
    candle.high >= Math.max(candle.open, candle.close)
  const isKnown = [startMs, candle.high, candle.volume].every(Number.isFinite)
  return isOrdered && isKnown && startMs % minuteMs === 0 && candle.volume >= 0 ? candle : undefined
}

/** The candle that is still open changes with each trade, so it is left out. */
export function historyOf(rows: readonly CandleRow[], timeframe: Timeframe, nowMs: number): History {
  const spanMs = timeframeMs[timeframe]
  const byStart = new Map<number, Candle>()
  let rejected = 0
  for (const row of rows) {
    const candle = candleOf(row, spanMs)
    if (!candle) rejected++
    else if (candle.endMs <= nowMs) byStart.set(candle.startMs, candle)
  }
  const candles = [...byStart.values()].sort((a, b) => a.startMs - b.startMs)
  const gaps = candles.reduce((sum, candle, at) => {
    const before = candles[at - 1]
    return before ? sum + Math.round((candle.startMs - before.endMs) / spanMs) : sum
  }, 0)
  return { timeframe, candles, gaps, rejected }
}
