import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import * as T from '#kernel/contract/schema.ts'
import { amountOf, decimalPattern, plain } from './decimals.ts'
import type { Urgency } from './urgency.ts'
import type { InfoAnswer, InfoType } from './wire.ts'

/**
 * A market's candles, funding and current order book, which all users share for a few seconds. `owner` is the
 * user whose share of the request budget is used, so that one user's reports leave the budget to others.
 */

export const candleIntervals = ['1m', '3m', '5m', '15m', '30m', '1h', '2h', '4h', '8h', '12h', '1d'] as const
export type CandleInterval = (typeof candleIntervals)[number]

export type MarketCandle = {
  startMs: number
  open: string
  high: string
  low: string
  close: string
  volume: string
}
export type BookLevel = { price: string; size: string }
export type Book = { timeMs: number; bids: BookLevel[]; asks: BookLevel[] }
export type RateOfHour = { atMs: number; rate: string }

export type MarketHistory = {
  /** Returns the candles since a time oldest first, `count` closed ones and the one that is still open. */
  candles(
    symbol: string,
    interval: CandleInterval,
    since: { sinceMs: number; count: number },
    owner?: string,
  ): Promise<MarketCandle[]>
  /**
   * Returns the candles of a time, at most 5,000 and oldest first; `count` is how many the time can have. With an owner
   * they count as a view of this user, without one as work in the background.
   */
  candlePage(
    symbol: string,
    interval: CandleInterval,
    time: { fromMs: number; toMs: number; count: number },
    owner?: string,
  ): Promise<MarketCandle[]>
  /** Returns the hourly funding rates of a market, oldest first. */
  fundingRates(symbol: string, sinceMs: number, owner?: string): Promise<RateOfHour[]>
  /** Returns the hourly funding rates of a time, at most 500 and oldest first. */
  fundingPage(symbol: string, time: { fromMs: number; toMs: number }, owner?: string): Promise<RateOfHour[]>
  /**
   * Returns the best levels of each side of a market's order book, and the time of the venue. The book may be a few seconds
   * old, or as old as `maxAgeMs` allows.
   */
  book(symbol: string, owner?: string, options?: { maxAgeMs: number }): Promise<Book>
}

type Info = <K extends InfoType>(
  type: K,
  fields: Record<string, unknown>,
  urgency: Urgency,
  options: { owner?: string | undefined; itemsMax?: number },
) => Promise<InfoAnswer<K>>

const cachedMs = 10_000
const entriesMax = 200
/** The venue returns at most this many rates; the next page begins after the last one. */
const ratesPerPage = 500
const hourMs = 3_600_000
const pagesMax = 6

const Level = T.Object({
  px: T.String({ pattern: decimalPattern }),
  sz: T.String({ pattern: decimalPattern }),
})
const Levels = T.Array(T.Array(Level), { minItems: 2 })
type WireLevels = T.Static<typeof Levels>

function parseBook({ time, levels }: InfoAnswer<'l2Book'>): Book {
  if (!fits(Levels, levels))
    throw new Fault('upstream_changed', 'Hyperliquid replied to l2Book in an unknown format')
  const [bids = [], asks = []] = (levels as WireLevels).map((side) =>
    side.map(({ px, sz }) => ({ price: plain(px), size: amountOf(sz) })),
  )
  return { timeMs: time, bids, asks }
}

const parseCandle = ({ t, o, h, l, c, v }: InfoAnswer<'candleSnapshot'>[number]): MarketCandle => ({
  startMs: t,
  open: plain(o),
  high: plain(h),
  low: plain(l),
  close: plain(c),
  volume: amountOf(v),
})

const keyOf = (parts: readonly (string | number)[]): string => parts.join(' ')

export function createMarketHistory(info: Info, nowMs: () => number): MarketHistory {
  const cache = <V>() => createTtlCache<V>({ ttlMs: cachedMs, entriesMax, nowMs })
  const [candles, rates, books] = [cache<MarketCandle[]>(), cache<RateOfHour[]>(), cache<Book>()]

  async function readPage(
    coin: string,
    { fromMs, toMs }: { fromMs: number; toMs: number },
    owner: string | undefined,
  ): Promise<RateOfHour[]> {
    const itemsMax = Math.min(ratesPerPage, Math.ceil((toMs - fromMs) / hourMs))
    const rows = await info('fundingHistory', { coin, startTime: fromMs, endTime: toMs }, 'view', {
      owner,
      itemsMax,
    })
    return rows.map(({ time, fundingRate }) => ({ atMs: time, rate: plain(fundingRate) }))
  }

  async function readRates(coin: string, sinceMs: number, owner: string | undefined): Promise<RateOfHour[]> {
    const found: RateOfHour[] = []
    let startTime = sinceMs
    for (let page = 0; page < pagesMax; page++) {
      const rates = await readPage(
        coin,
        { fromMs: startTime, toMs: startTime + ratesPerPage * hourMs },
        owner,
      )
      found.push(...rates)
      const last = rates.at(-1)
      if (rates.length < ratesPerPage || !last) break
      startTime = last.atMs + 1
    }
    return found
  }

  return {
    candles: (coin, interval, { sinceMs, count }, owner) =>
      candles.get(keyOf([coin, interval, sinceMs]), async () => {
        const req = { coin, interval, startTime: sinceMs }
        const rows = await info('candleSnapshot', { req }, 'view', { owner, itemsMax: count + 1 })
        return rows.map(parseCandle)
      }),
    async candlePage(coin, interval, { fromMs, toMs, count }, owner) {
      const req = { coin, interval, startTime: fromMs, endTime: toMs }
      const rows = await info('candleSnapshot', { req }, owner === undefined ? 'background' : 'view', {
        owner,
        itemsMax: count,
      })
      return rows.map(parseCandle)
    },
    fundingRates: (coin, sinceMs, owner) =>
      rates.get(keyOf([coin, sinceMs]), () => readRates(coin, sinceMs, owner)),
    fundingPage: readPage,
    book: (coin, owner, options) =>
      books.get(coin, async () => parseBook(await info('l2Book', { coin }, 'view', { owner })), options),
  }
}
