import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import { type PacedJob, startPacedJob } from '#kernel/async/paced-job.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { type Candle, type CandleSpan, candleSpanMs, candleSpans } from '#market/candle.ts'
import { type CandleColumns, columnsOf } from '#market/strategies/candle-columns.ts'
import { type Queryable, query } from '#store/query.ts'
import type { MarketHistory } from '#upstreams/hyperliquid/market-history.ts'

/**
 * The closed candles of the venue's markets. The venue serves the newest 5,000 of an interval alone, so a series that
 * somebody reads is filled before its candles are gone; what was not read in time stays a gap.
 */

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
export type CandleRequest = { fromMs?: number; toMs?: number; limit: number }

export type CandleStoreDeps = {
  db: Queryable
  clock: Clock
  log: Log
  venue: Pick<MarketHistory, 'candlePage' | 'book'>
  /** The weight of requests that filling may take in a minute; 0: no limit. */
  weightPerMinute: number
  /** Whether this instance fills for all of them. */
  isOnDuty: () => boolean
}
export type CandleStore = {
  /** Reads the newest candles of a time after it has filled what is missing at the end. */
  read(series: Series, request: CandleRequest, owner: string): Promise<CandleReading & { asOfMs: number }>
  /** Fills the candles from a time to the newest close, and returns the time of the venue. */
  fill(series: Series, fromMs: number, owner: string): Promise<number>
  /**
   * Fills the candles of a time that ends with a close, and returns whether the venue has come to that close. Candles that
   * are there are not asked for again.
   */
  fillUntil(series: Series, time: { fromMs: number; toMs: number }, owner: string): Promise<boolean>
  /** Reads the stored candles of a time by column. */
  columns(series: Series, time: { fromMs: number; toMs: number }): Promise<CandleColumns>
  start(): AsyncDisposable
  jobs: readonly MaintenanceJob[]
}

const servedMax = 5_000
/** A page of which parsing blocks the process for a few milliseconds at most. */
const pageMax = 2_500
/** A series is filled for so long after somebody has read it. */
const followMs = 7 * 86_400_000
/** A series that nobody reads is filled at this interval, or with each candle where these are longer. */
const fillEveryMs = 15 * 60_000
const restMs = 60_000
const retryMs = 30_000
/** Every series has at most this many candles: 35 days of minutes. */
const candlesMax = 50_400
const batchMax = 2_000
/** BTC trades in every block, so the time of its book is the present time of the venue. */
const clockMarket = 'BTC'
/** The most that the time of the venue may be old for a candle that has closed just now. */
const clockMaxAgeMs = 250

const closeBefore = (atMs: number, span: CandleSpan): number =>
  Math.floor(atMs / candleSpanMs[span]) * candleSpanMs[span]

const weightOf = (candles: number): number => 20 + Math.ceil(candles / 60)

type SeriesRow = { market: string; span: CandleSpan; filled_from_ms: bigint; filled_to_ms: bigint }
type Filled = { fromMs: number; toMs: number }
/** Asks for the candles from `firstMs` to the newest close. */
type Filling = { venueMs: number; firstMs: number; owner?: string }

export function createCandleStore(deps: CandleStoreDeps): CandleStore {
  const { db, clock, log, venue, weightPerMinute, isOnDuty } = deps

  async function filledOf({ market, span }: Series): Promise<Filled | undefined> {
    const [row] = await query<SeriesRow>(
      db,
      'select filled_from_ms, filled_to_ms from candle_series where market = $1 and span = $2',
      [market, span],
    )
    return row && { fromMs: Number(row.filled_from_ms), toMs: Number(row.filled_to_ms) }
  }

  /** Reads a page, stores it, and widens what is filled by it. */
  async function fillPage(series: Series, page: Filled, owner: string | undefined): Promise<number> {
    const { market, span } = series
    const spanMs = candleSpanMs[span]
    const rows = await venue.candlePage(market, span, { fromMs: page.fromMs, toMs: page.toMs - 1 }, owner)
    await insert(
      db,
      series,
      rows.filter(({ startMs }) => startMs >= page.fromMs && startMs + spanMs <= page.toMs),
    )
    await query(
      db,
      `insert into candle_series (market, span, filled_from_ms, filled_to_ms, followed_until)
       values ($1, $2, $3, $4, $5)
       on conflict (market, span) do update set
         filled_from_ms = least(candle_series.filled_from_ms, excluded.filled_from_ms),
         filled_to_ms = greatest(candle_series.filled_to_ms, excluded.filled_to_ms)`,
      [market, span, page.fromMs, page.toMs, later(clock.now(), followMs)],
    )
    return weightOf(rows.length)
  }

  /** Reads what is missing until the newest close, and before what is there; returns the weight that this has taken. */
  async function fill(series: Series, { venueMs, firstMs, owner }: Filling): Promise<number> {
    const pageMs = pageMax * candleSpanMs[series.span]
    const servedMs = servedMax * candleSpanMs[series.span]
    const closedMs = closeBefore(venueMs, series.span)
    const oldestMs = Math.max(firstMs, closedMs - candlesMax * candleSpanMs[series.span])
    const known = await filledOf(series)
    let weight = 0
    let toMs = known?.toMs ?? Math.max(oldestMs, closedMs - servedMs)
    const fromMs = known?.fromMs ?? toMs
    while (toMs < closedMs) {
      const page = { fromMs: toMs, toMs: Math.min(closedMs, toMs + pageMs) }
      weight += await fillPage(series, page, owner)
      toMs = page.toMs
    }
    for (let before = fromMs; before > oldestMs; before = Math.max(oldestMs, before - pageMs)) {
      const page = { fromMs: Math.max(oldestMs, before - pageMs), toMs: before }
      weight += await fillPage(series, page, owner)
    }
    return weight
  }

  const follow = ({ market, span }: Series) =>
    query(
      db,
      `update candle_series set followed_until = $3 where market = $1 and span = $2 and followed_until < $4`,
      [market, span, later(clock.now(), followMs), later(clock.now(), followMs - 3_600_000)],
    )

  /** Fills the series that is behind most, and returns the time until the next one. */
  async function fillNext(): Promise<number> {
    if (!isOnDuty()) return restMs
    const { timeMs: venueMs } = await venue.book(clockMarket)
    const followed = await query<SeriesRow>(
      db,
      'select market, span, filled_from_ms, filled_to_ms from candle_series where followed_until > $1',
      [clock.now()],
    )
    const lateBy = ({ span, filled_to_ms: toMs }: SeriesRow) =>
      venueMs - Number(toMs) - Math.max(candleSpanMs[span], fillEveryMs)
    const firstMs = ({ span }: SeriesRow) => closeBefore(venueMs, span) - servedMax * candleSpanMs[span]
    const [next] = followed
      .filter((row) => lateBy(row) >= 0 || Number(row.filled_from_ms) > firstMs(row))
      .sort((a, b) => lateBy(b) - lateBy(a))
    if (!next) return restMs
    const weight = await fill(next, { venueMs, firstMs: firstMs(next) })
    return weightPerMinute === 0 ? 0 : Math.ceil((weight / weightPerMinute) * 60_000)
  }

  return {
    async read(series, request, owner) {
      const { timeMs: venueMs } = await venue.book(clockMarket, owner)
      const bounds = boundsOf(series, request, venueMs)
      await fill(series, { venueMs, firstMs: bounds.firstMs, owner })
      await follow(series)
      return { ...(await readCandles(db, series, bounds)), asOfMs: venueMs }
    },
    async fill(series, fromMs, owner) {
      const { timeMs: venueMs } = await venue.book(clockMarket, owner)
      await fill(series, { venueMs, firstMs: fromMs, owner })
      await follow(series)
      return venueMs
    },
    async fillUntil(series, { fromMs, toMs }, owner) {
      const known = await filledOf(series)
      if (known && known.fromMs <= fromMs && known.toMs >= toMs) return true
      const { timeMs: venueMs } = await venue.book(clockMarket, owner, { maxAgeMs: clockMaxAgeMs })
      if (venueMs < toMs) return false
      await fill(series, { venueMs, firstMs: fromMs, owner })
      await follow(series)
      return true
    },
    columns: (series, time) => readColumns(db, series, time),
    start(): PacedJob {
      const onError = (error: unknown) =>
        log.warn({ error }, 'candles were not read from the venue; the next turn tries again')
      return startPacedJob(fillNext, { onError, retryMs })
    },
    jobs: [deletionJob(db, clock)],
  }
}

async function insert(db: Queryable, { market, span }: Series, candles: readonly StoredCandle[]) {
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

function boundsOf({ span }: Series, { fromMs, toMs, limit }: CandleRequest, venueMs: number): Bounds {
  const spanMs = candleSpanMs[span]
  const closedMs = closeBefore(venueMs, span)
  const endMs = Math.min(closedMs, toMs === undefined ? closedMs : closeBefore(toMs, span))
  return {
    spanMs,
    endMs,
    firstMs: Math.max(endMs - limit * spanMs, Math.ceil((fromMs ?? 0) / spanMs) * spanMs),
  }
}

async function readCandles(db: Queryable, { market, span }: Series, bounds: Bounds): Promise<CandleReading> {
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

async function readColumns(
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

type Bounds = { firstMs: number; endMs: number; spanMs: number }

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

const deletionSql = `delete from candle where (market, span, start_ms) in (
  select old.market, old.span, old.start_ms
  from unnest($1::text[], $2::bigint[]) as age (span, before_ms)
    join candle_series s on s.span = age.span
    cross join lateral (
      select c.market, c.span, c.start_ms from candle c
      where c.market = s.market and c.span = s.span and c.start_ms < age.before_ms
      order by c.start_ms limit $3
    ) old
  limit $3) returning start_ms`

const deletionJob = (db: Queryable, clock: Clock): MaintenanceJob => ({
  name: 'retention of candles',
  async runBatch() {
    const nowMs = clock.now().getTime()
    const before = candleSpans.map((span) => nowMs - candlesMax * candleSpanMs[span])
    const ages = [candleSpans, before.map((ms) => Math.max(0, ms)), batchMax]
    return (await query(db, deletionSql, ages)).length === batchMax
  },
})
