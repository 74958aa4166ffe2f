import { type Candle, type CandleSpan, candleSpanMs } from '#market/candle.ts'
import { type CandleColumns, columnsOf } from '#market/strategies/candle-columns.ts'
import { type Queryable, query } from '#store/query.ts'

/** The statements by which closed candles are stored and read. */

export type Series = { market: string; span: CandleSpan }
export type StoredCandle = {
  startMs: number
  open: string
  high: string
  low: string
  close: string
  volume: string
}
/** A time of which no candle is stored: from the start of the first missing one to the end of the last. */
export type CandleGap = { fromMs: number; toMs: number; candles: number }
export type CandleReading = { candles: StoredCandle[]; gaps: CandleGap[] }

export async function insertCandles(
  db: Queryable,
  { market, span }: Series,
  candles: readonly StoredCandle[],
) {
  if (candles.length === 0) return
  const column = (name: keyof StoredCandle) => candles.map((candle) => String(candle[name]))
  await query(
    db,
    `insert into candle (market, span, start_ms, open, high, low, close, volume)
     select $1, $2, * from unnest($3::bigint[], $4::numeric[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[])
     on conflict do nothing`,
    [
      market,
      span,
      column('startMs'),
      column('open'),
      column('high'),
      column('low'),
      column('close'),
      column('volume'),
    ],
  )
}

type CandleText = Omit<StoredCandle, 'startMs'> & { start_ms: bigint }

export type Bounds = { firstMs: number; endMs: number; spanMs: number }

export async function readCandles(
  db: Queryable,
  { market, span }: Series,
  bounds: Bounds,
): Promise<CandleReading> {
  const rows = await query<CandleText>(
    db,
    `select start_ms, open::text, high::text, low::text, close::text, volume::text from candle
     where market = $1 and span = $2 and start_ms >= $3 and start_ms < $4 order by start_ms`,
    [market, span, bounds.firstMs, bounds.endMs],
  )
  const candles = rows.map(({ start_ms, ...prices }) => ({ startMs: Number(start_ms), ...prices }))
  return { candles, gaps: gapsBetween(candles, bounds) }
}

type CandleNumbers = Record<'start' | 'open' | 'high' | 'low' | 'close' | 'volume', number>
/** Rows that are read together, so that other work of the process waits for a few milliseconds at most. */
const rowsMax = 1_500

export async function readColumns(
  db: Queryable,
  { market, span }: Series,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<CandleColumns> {
  const candles: Candle[] = []
  const spanMs = candleSpanMs[span]
  for (let next = fromMs; ; ) {
    const rows = await query<CandleNumbers>(
      db,
      `select start_ms::float8 as start, open::float8, high::float8, low::float8, close::float8, volume::float8
       from candle where market = $1 and span = $2 and start_ms >= $3 and start_ms < $4 order by start_ms limit $5`,
      [market, span, next, toMs, rowsMax],
    )
    for (const { start, ...prices } of rows)
      candles.push({ startMs: start, endMs: start + spanMs, ...prices })
    const last = rows.at(-1)
    if (rows.length < rowsMax || !last) return columnsOf(candles, spanMs)
    next = last.start + 1
  }
}

/** Returns every time within the bounds of which no candle is there. */
export function gapsBetween(
  candles: readonly Pick<StoredCandle, 'startMs'>[],
  { firstMs, endMs, spanMs }: Bounds,
): CandleGap[] {
  const gaps: CandleGap[] = []
  let expectedMs = firstMs
  for (const startMs of [...candles.map((candle) => candle.startMs), endMs]) {
    if (startMs > expectedMs)
      gaps.push({ fromMs: expectedMs, toMs: startMs, candles: (startMs - expectedMs) / spanMs })
    expectedMs = startMs + spanMs
  }
  return gaps
}
