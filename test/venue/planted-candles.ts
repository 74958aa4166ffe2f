/** Candles in the database as if the venue had served them, so that a test decides what an indicator says. */
import { type CandleSpan, candleSpanMs } from '#market/candle.ts'
import type { CandleColumns } from '#market/strategies/candle-columns.ts'
import { type Queryable, query } from '#store/query.ts'

type Planted = {
  market: string
  span: CandleSpan
  closes: readonly number[]
  wick: number
  /** The time of the last close; left out: the newest one. */
  endMs?: number
}

/** Stores closed candles that end with the last close; later ones repeat the last, for as long as a test takes. */
export async function plantCandles(
  db: Queryable,
  { market, span, closes, wick, ...given }: Planted,
): Promise<void> {
  const spanMs = candleSpanMs[span]
  const endMs = given.endMs ?? Math.floor(Date.now() / spanMs) * spanMs
  const firstMs = endMs - closes.length * spanMs
  const later = 4
  const all = [...closes, ...Array.from({ length: later }, () => closes.at(-1)!)]
  const open = all.map((close, at) => all[at - 1] ?? close)
  const start = all.map((_, at) => firstMs + at * spanMs)
  const high = all.map((close, at) => Math.max(close, open[at]!) + wick)
  const low = all.map((close, at) => Math.min(close, open[at]!) - wick)
  await plant(db, { market, span }, { spanMs, start, open, high, low, close: all, volume: all.map(() => 1) })
}

/** Stores candles as they are. */
export const plantColumns = (
  db: Queryable,
  { market, span, columns }: { market: string; span: CandleSpan; columns: CandleColumns },
): Promise<void> => plant(db, { market, span }, { ...columns, start: columns.startMs })

type Numbers = ArrayLike<number> & Iterable<number>
type Columns = Record<'start' | 'open' | 'high' | 'low' | 'close' | 'volume', Numbers> & { spanMs: number }

async function plant(
  db: Queryable,
  { market, span }: Pick<Planted, 'market' | 'span'>,
  { spanMs, start, open, high, low, close, volume }: Columns,
): Promise<void> {
  await query(db, 'delete from candle where market = $1 and span = $2', [market, span])
  await query(
    db,
    `insert into candle (market, span, start_ms, open, high, low, close, volume)
     select $1, $2, * from unnest($3::bigint[], $4::numeric[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[])`,
    [market, span, ...[start, open, high, low, close, volume].map((values) => [...values].map(String))],
  )
  await query(
    db,
    `insert into candle_series (market, span, filled_from_ms, filled_to_ms, followed_until)
     values ($1, $2, $3, $4, now()) on conflict (market, span) do update set
       filled_from_ms = excluded.filled_from_ms, filled_to_ms = excluded.filled_to_ms`,
    [market, span, start[0], start[start.length - 1]! + spanMs],
  )
}

/** An upward trend with a pullback at its end, which ends at a price. */
export function pullbackOfUptrend(endsAt: number): number[] {
  const [rises, falls] = [1_000, 8]
  const [rise, fall] = [endsAt * 0.0001, endsAt * 0.0008]
  const top = endsAt + falls * fall
  return [
    ...Array.from({ length: rises }, (_, at) => top - (rises - 1 - at) * rise),
    ...Array.from({ length: falls }, (_, at) => top - (at + 1) * fall),
  ].map((price) => Number(price.toFixed(1)))
}
