import type { Candle } from '#market/candle.ts'

/** Candles by column, the oldest first, so that a window is a view that copies nothing. */
export type CandleColumns = {
  spanMs: number
  startMs: Float64Array
  open: Float64Array
  high: Float64Array
  low: Float64Array
  close: Float64Array
  volume: Float64Array
}

/** A decision is made from exactly this many closed candles, so neither longer history nor later candles matter. */
export const windowCandles = 1_000

/** Exactly 1,000 consecutive closed candles of one interval. */
export type CandleWindow = CandleColumns & {
  /** The first millisecond after the last candle. */
  endMs: number
}

/** The window of each asset of a strategy; all of them end at the same time. */
export type Windows = Readonly<Record<string, CandleWindow>>

const columnNames = ['startMs', 'open', 'high', 'low', 'close', 'volume'] as const

export function columnsOf(candles: readonly Candle[], spanMs: number): CandleColumns {
  const columns = emptyColumns(candles.length, spanMs)
  for (const [at, candle] of candles.entries())
    for (const name of columnNames) columns[name][at] = candle[name]
  return columns
}

const emptyColumns = (length: number, spanMs: number): CandleColumns => ({
  spanMs,
  startMs: new Float64Array(length),
  open: new Float64Array(length),
  high: new Float64Array(length),
  low: new Float64Array(length),
  close: new Float64Array(length),
  volume: new Float64Array(length),
})

/** Returns the window that ends with the candle at a position; undefined with fewer candles, or with a gap in them. */
export function windowAt(columns: CandleColumns, at: number): CandleWindow | undefined {
  const [first, end] = [at - windowCandles + 1, at + 1]
  const { spanMs, startMs } = columns
  const [firstMs, lastMs] = [startMs[first], startMs[at]]
  if (firstMs === undefined || lastMs === undefined) return undefined
  if (lastMs - firstMs !== (windowCandles - 1) * spanMs) return undefined
  return {
    spanMs,
    endMs: lastMs + spanMs,
    startMs: startMs.subarray(first, end),
    open: columns.open.subarray(first, end),
    high: columns.high.subarray(first, end),
    low: columns.low.subarray(first, end),
    close: columns.close.subarray(first, end),
    volume: columns.volume.subarray(first, end),
  }
}

/** Returns the window of the newest candles that have closed by `nowMs`. */
export function latestWindow(columns: CandleColumns, nowMs: number): CandleWindow | undefined {
  let at = columns.startMs.length - 1
  while (at >= 0 && (columns.startMs[at] ?? 0) + columns.spanMs > nowMs) at--
  return windowAt(columns, at)
}

/** Merges candles into a longer interval; an interval of which a candle is missing is left out. */
export function mergedColumns(columns: CandleColumns, spanMs: number): CandleColumns {
  const perSpan = spanMs / columns.spanMs
  const merged: Candle[] = []
  const { startMs, open, high, low, close, volume } = columns
  for (let at = 0; at + perSpan <= startMs.length; ) {
    const first = startMs[at] ?? 0
    const last = at + perSpan - 1
    if (first % spanMs !== 0 || startMs[last] !== first + spanMs - columns.spanMs) {
      at++
      continue
    }
    let [top, bottom, traded] = [0, Number.POSITIVE_INFINITY, 0]
    for (let part = at; part <= last; part++) {
      top = Math.max(top, high[part] ?? 0)
      bottom = Math.min(bottom, low[part] ?? 0)
      traded += volume[part] ?? 0
    }
    merged.push({
      startMs: first,
      endMs: first + spanMs,
      open: open[at] ?? 0,
      high: top,
      low: bottom,
      close: close[last] ?? 0,
      volume: traded,
    })
    at = last + 1
  }
  return columnsOf(merged, spanMs)
}
