import type { CandleStore } from '#engines/candles/candle-store.ts'
import type { FundingStore } from '#engines/candles/funding-store.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { type CandleSpan, candleSpanMs } from '#market/candle.ts'
import {
  type CandleColumns,
  type CandleWindow,
  type Windows,
  windowAt,
  windowCandles,
} from '#market/strategies/candle-columns.ts'
import type { FundingRate } from '#market/trade-simulation.ts'
import type { Book, Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'

/** What strategies read of markets. Whatever several of them need at one time is read once. */

export type ObserveDeps = {
  candles: Pick<CandleStore, 'fillUntil' | 'columns'>
  funding: FundingStore
  venue: Pick<Hyperliquid, 'mids' | 'book'>
}
export type Time = { fromMs: number; toMs: number }
export type Observe = {
  /**
   * Returns the 1,000 closed candles of each asset that end with a close; `windows` is undefined where there are not as
   * many. Returns `waitMs` while the venue has not come to that close.
   */
  windows(
    assets: readonly string[],
    at: { span: CandleSpan; closeMs: number },
    owner: string,
  ): Promise<{ windows: Windows | undefined } | { waitMs: number }>
  /** Returns the closed minutes of a time, or undefined while the venue has not come to its end. */
  minutes(asset: string, time: Time, owner: string): Promise<CandleColumns | undefined>
  /** Returns the rates of a time that is over for long enough that the venue has published them. */
  funding(asset: string, time: Time, owner: string): Promise<FundingRate[]>
  mids(): Promise<ReadonlyMap<string, string>>
  /** Returns the book of an asset, which is at most this old. */
  book(asset: string, maxAgeMs: number, owner: string): Promise<Book>
}

const windowsMax = 60
const seriesMax = 200
const sharedMs = 600_000
const midsMs = 500
/** A close of the venue that has not come is looked at again after this time. */
const closeWaitMs = 250

class NotClosed extends Error {}
const unlessClosed = (error: unknown): undefined => {
  if (error instanceof NotClosed) return undefined
  throw error
}

export function createObserve({ candles, funding, venue }: ObserveDeps): Observe {
  const cache = <V>(entriesMax: number, ttlMs = sharedMs) =>
    createTtlCache<V>({ ttlMs, entriesMax, nowMs: monotonicMs })
  const windows = cache<CandleWindow | null>(windowsMax)
  const minutes = cache<CandleColumns>(seriesMax)
  const rates = cache<FundingRate[]>(seriesMax)
  const mids = cache<ReadonlyMap<string, string>>(1, midsMs)

  async function readColumns(
    series: { market: string; span: CandleSpan },
    time: Time,
    owner: string,
  ): Promise<CandleColumns> {
    if (!(await candles.fillUntil(series, time, owner))) throw new NotClosed()
    return candles.columns(series, time)
  }

  const windowOf = (market: string, span: CandleSpan, closeMs: number, owner: string) =>
    windows.get(`${market} ${span} ${closeMs}`, async () => {
      const time = { fromMs: closeMs - windowCandles * candleSpanMs[span], toMs: closeMs }
      const columns = await readColumns({ market, span }, time, owner)
      const window = windowAt(columns, columns.startMs.length - 1)
      return window?.endMs === closeMs ? window : null
    })

  return {
    async windows(assets, { span, closeMs }, owner) {
      const read = assets.map((asset) => windowOf(asset, span, closeMs, owner))
      const found = await Promise.all(read).catch(unlessClosed)
      if (!found) return { waitMs: closeWaitMs }
      const whole = assets.flatMap((asset, at) => (found[at] ? [[asset, found[at]] as const] : []))
      return { windows: whole.length === assets.length ? Object.fromEntries(whole) : undefined }
    },
    minutes: (market, time, owner) =>
      minutes
        .get(`${market} ${time.fromMs} ${time.toMs}`, () => readColumns({ market, span: '1m' }, time, owner))
        .catch(unlessClosed),
    funding: (market, time, owner) =>
      rates.get(`${market} ${time.fromMs} ${time.toMs}`, async () => {
        await funding.fill(market, time, owner)
        return funding.read(market, time)
      }),
    mids: () => mids.get('all', () => venue.mids()),
    book: (asset, maxAgeMs, owner) => venue.book(asset, owner, { maxAgeMs }),
  }
}
