import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import { createLru } from '#kernel/async/create-lru.ts'
import { type PacedJob, startPacedJob } from '#kernel/async/paced-job.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import { type CandleSpan, candleSpanMs, candleSpans } from '#market/candle.ts'
import type { CandleColumns } from '#market/strategies/candle-columns.ts'
import { type Queryable, query } from '#store/query.ts'
import type { MarketHistory } from '#upstreams/hyperliquid/market-history.ts'
import {
  type Bounds,
  type CandleReading,
  insertCandles,
  readCandles,
  readColumns,
  type Series,
  type StoredCandle,
} from './candle-rows.ts'

/**
 * The closed candles of the venue's markets. The venue serves the newest 5,000 of an interval alone, so a series that
 * somebody reads is filled before its candles are gone; what was not read in time stays a gap.
 */

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
  /** Fills the candles from a time to the newest close, and returns until when they are filled. */
  fill(series: Series, fromMs: number, owner: string): Promise<number>
  /**
   * Fills the candles of a time that ends with a close, and returns whether the venue has come to that close. Candles that
   * are there are not asked for again, and missing ones rarely.
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
/** How often the missing candles of a series are asked for again, while somebody reads a time that lacks them. */
const holesEveryMs = 15 * 60_000
/** The venue has some hundred markets, each with a series of every length. */
const seriesMax = 10_000
const batchMax = 2_000
/** BTC trades in every block, so the time of its book is the present time of the venue. */
const clockMarket = 'BTC'
/** The most that the time of the venue may be old for a candle that has closed just now. */
const clockMaxAgeMs = 250
/** What the venue answers is at most this much older than its present state. */
const answerLagMs = 10_000

const closeBefore = (atMs: number, span: CandleSpan): number =>
  Math.floor(atMs / candleSpanMs[span]) * candleSpanMs[span]

const weightOf = (candles: number): number => 20 + Math.ceil(candles / 60)

type SeriesRow = { market: string; span: CandleSpan; filled_from_ms: bigint; filled_to_ms: bigint }
type Filled = { fromMs: number; toMs: number }
type Page = Filled & { venueMs: number; owner: string | undefined }
/** Asks for the candles from `firstMs` to the newest close. */
type Filling = { venueMs: number; firstMs: number; owner?: string }
/** Until when a series is filled, and the weight of the requests that this has taken. */
type FilledUntil = { toMs: number; weight: number }

async function filledOf(db: Queryable, { market, span }: Series): Promise<Filled | undefined> {
  const [row] = await query<SeriesRow>(
    db,
    'select filled_from_ms, filled_to_ms from candle_series where market = $1 and span = $2',
    [market, span],
  )
  return row && { fromMs: Number(row.filled_from_ms), toMs: Number(row.filled_to_ms) }
}

/** What is there is read without the rows that the venue does not answer now. */
function noneIfRefused(error: unknown): [] {
  if (error instanceof Fault) return []
  throw error
}

/** Returns what asks once more for candles that an answer lacked; a market may also not have traded then. */
function createHoleFilling({ db, clock, venue }: Pick<CandleStoreDeps, 'db' | 'clock' | 'venue'>) {
  const askedAtMs = createLru<string, number>(seriesMax)
  return async (series: Series, { fromMs, toMs }: Filled, owner: string): Promise<void> => {
    const { market, span } = series
    const spanMs = candleSpanMs[span]
    const { gaps } = await readCandles(db, series, { firstMs: fromMs, endMs: toMs, spanMs })
    const [first, last] = [gaps[0], gaps.at(-1)]
    const [key, nowMs] = [`${market} ${span}`, clock.now().getTime()]
    if (!first || !last || nowMs - (askedAtMs.get(key) ?? 0) < holesEveryMs) return
    askedAtMs.set(key, nowMs)
    const endMs = Math.min(last.toMs, first.fromMs + pageMax * spanMs)
    const rows = await venue
      .candlePage(
        market,
        span,
        { fromMs: first.fromMs, toMs: endMs - 1, count: (endMs - first.fromMs) / spanMs },
        owner,
      )
      .catch(noneIfRefused)
    const missing = rows.filter(({ startMs }) => startMs >= first.fromMs && startMs + spanMs <= endMs)
    await insertCandles(db, series, missing)
  }
}

export function createCandleStore(deps: CandleStoreDeps): CandleStore {
  const { db, clock, log, venue, weightPerMinute, isOnDuty } = deps
  const fillHoles = createHoleFilling(deps)

  /** Reads a page, stores what of it is final, and widens what is filled by that; returns its end and its weight. */
  async function fillPage(series: Series, page: Page): Promise<FilledUntil> {
    const { market, span } = series
    const { fromMs, owner } = page
    const spanMs = candleSpanMs[span]
    // The candle after the page shows that the last one of the page has closed.
    const count = (page.toMs - fromMs) / spanMs + 1
    const rows = await venue.candlePage(market, span, { fromMs, toMs: page.toMs + spanMs - 1, count }, owner)
    const toMs = finalUntil(rows, page)
    const weight = weightOf(rows.length)
    if (toMs <= fromMs) return { toMs: fromMs, weight }
    await insertCandles(
      db,
      series,
      rows.filter(({ startMs }) => startMs >= fromMs && startMs + spanMs <= toMs),
    )
    await query(
      db,
      `insert into candle_series (market, span, filled_from_ms, filled_to_ms, followed_until)
       values ($1, $2, $3, $4, $5)
       on conflict (market, span) do update set
         filled_from_ms = least(candle_series.filled_from_ms, excluded.filled_from_ms),
         filled_to_ms = greatest(candle_series.filled_to_ms, excluded.filled_to_ms)`,
      [market, span, fromMs, toMs, later(clock.now(), followMs)],
    )
    return { toMs, weight }
  }

  /** Reads what is missing until the newest close, and before what is there. */
  async function fill(series: Series, { venueMs, firstMs, owner }: Filling): Promise<FilledUntil> {
    const spanMs = candleSpanMs[series.span]
    const pageMs = pageMax * spanMs
    const closedMs = closeBefore(venueMs, series.span)
    const storedFromMs = closedMs - candlesMax * spanMs
    const oldestMs = Math.max(firstMs, storedFromMs)
    const known = await filledOf(db, series)
    let weight = 0
    let toMs = Math.max(storedFromMs, known?.toMs ?? Math.max(oldestMs, closedMs - servedMax * spanMs))
    const knownFromMs = known?.fromMs ?? toMs
    let isFinal = true
    while (toMs < closedMs && isFinal) {
      const page = { fromMs: toMs, toMs: Math.min(closedMs, toMs + pageMs), venueMs, owner }
      const filled = await fillPage(series, page)
      weight += filled.weight
      isFinal = filled.toMs === page.toMs
      toMs = filled.toMs
    }
    for (let before = knownFromMs; before > oldestMs; before = Math.max(oldestMs, before - pageMs)) {
      const page = { fromMs: Math.max(oldestMs, before - pageMs), toMs: before, venueMs, owner }
      weight += (await fillPage(series, page)).weight
    }
    return { toMs, weight }
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
    const { weight, toMs } = await fill(next, { venueMs, firstMs: firstMs(next) })
    const pacedMs = weightPerMinute === 0 ? 0 : Math.ceil((weight / weightPerMinute) * 60_000)
    return toMs < closeBefore(venueMs, next.span) ? Math.max(answerLagMs, pacedMs) : pacedMs
  }

  return {
    async read(series, request, owner) {
      const { timeMs: venueMs } = await venue.book(clockMarket, owner)
      const bounds = boundsOf(series, request, venueMs)
      const { toMs } = await fill(series, { venueMs, firstMs: bounds.firstMs, owner })
      await follow(series)
      const endMs = Math.min(bounds.endMs, toMs)
      return { ...(await readCandles(db, series, { ...bounds, endMs })), asOfMs: venueMs }
    },
    async fill(series, fromMs, owner) {
      const { timeMs: venueMs } = await venue.book(clockMarket, owner)
      const filled = await fill(series, { venueMs, firstMs: fromMs, owner })
      await follow(series)
      return filled.toMs
    },
    async fillUntil(series, { fromMs, toMs }, owner) {
      const known = await filledOf(db, series)
      if (known && known.fromMs <= fromMs && known.toMs >= toMs)
        return fillHoles(series, { fromMs, toMs }, owner).then(() => true)
      const { timeMs: venueMs } = await venue.book(clockMarket, owner, { maxAgeMs: clockMaxAgeMs })
      if (venueMs < toMs) return false
      const filled = await fill(series, { venueMs, firstMs: fromMs, owner })
      await follow(series)
      return filled.toMs >= toMs
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

/**
 * Returns until when the candles of a page are final. The answer may be older than the time of the venue, so a candle has
 * closed if a later one is there, or if its close is long enough ago.
 */
function finalUntil(rows: readonly Pick<StoredCandle, 'startMs'>[], { fromMs, toMs, venueMs }: Page): number {
  if (venueMs - toMs >= answerLagMs) return toMs
  const last = rows.at(-1)?.startMs ?? fromMs
  return Math.max(fromMs, Math.min(toMs, last))
}

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
