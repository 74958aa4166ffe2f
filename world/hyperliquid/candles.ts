import { nextNormal, nextRandom, type RandomState } from '#world/venue-core/random.ts'

/** Prices in 1e-8 units, volume in lots. */
export type Candle = {
  startMs: number
  spanMs: number
  open: number
  high: number
  low: number
  close: number
  volume: number
  trades: number
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

export const intervals = {
  '1m': minute,
  '3m': 3 * minute,
  '5m': 5 * minute,
  '15m': 15 * minute,
  '30m': 30 * minute,
  '1h': hour,
  '2h': 2 * hour,
  '4h': 4 * hour,
  '8h': 8 * hour,
  '12h': 12 * hour,
  '1d': day,
  '3d': 3 * day,
  '1w': 7 * day,
  '1M': 30 * day,
} as const

export type Interval = keyof typeof intervals

const monthStart = (timeMs: number): number => {
  const date = new Date(timeMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

const nextMonth = (startMs: number): number => {
  const date = new Date(startMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
}

/** Weeks begin on Monday; the epoch was a Thursday. */
export const bucketStart = (timeMs: number, interval: Interval): number => {
  if (interval === '1M') return monthStart(timeMs)
  const shift = interval === '1w' ? 4 * day : 0
  const size = intervals[interval]
  return Math.floor((timeMs - shift) / size) * size + shift
}

export const bucketEnd = (startMs: number, interval: Interval): number =>
  (interval === '1M' ? nextMonth(startMs) : startMs + intervals[interval]) - 1

/**
 * From fine to coarse, newest first: how much history of each interval a new venue has. The minutes are 35 days, and each
 * interval of up to a day has at least 1,100 closed candles.
 */
const eras: readonly { size: number; count: number; sigma: number }[] = [
  { size: minute, count: 50_400, sigma: 0.000_5 },
  { size: 15 * minute, count: 1_920, sigma: 0.002 },
  { size: hour, count: 12_000, sigma: 0.004 },
  { size: day, count: 600, sigma: 0.02 },
]

type Walk = { random: RandomState; price: number; perMinute: number }

/** Backwards in time: the close of the older candle is the open of the newer one. */
const previousCandle = (walk: Walk, startMs: number, size: number, sigma: number): Candle => {
  const { random } = walk
  const close = walk.price
  const open = Math.max(1, Math.round(close * (1 - nextNormal(random) * sigma)))
  const reach = 1 + nextRandom(random) * sigma
  const minutes = size / minute
  walk.price = open
  return {
    startMs,
    spanMs: size,
    open,
    close,
    high: Math.round(Math.max(open, close) * reach),
    low: Math.max(1, Math.round(Math.min(open, close) / reach)),
    volume: Math.max(1, Math.round(walk.perMinute * minutes * (0.4 + nextRandom(random) * 1.2))),
    trades: Math.max(1, Math.round(minutes * (2 + nextRandom(random) * 6))),
  }
}

/** The start of a market's history: the same seed gives the same candles. */
export type PastOptions = { seed: number; genesisMs: number; price: number; lotsPerMinute: number }
export type Past = {
  /** Returns the candles that end after a time, oldest first. It makes only those that nobody has asked for yet. */
  since(fromMs: number): Candle[]
}

/** Candles are made backwards in time, so a short history is the end of a long one. */
export const createPast = ({ seed, genesisMs, price, lotsPerMinute }: PastOptions): Past => {
  const walk: Walk = { random: { at: seed | 0 }, price, perMinute: lotsPerMinute }
  const newestFirst: Candle[] = []
  let end = Math.floor(genesisMs / minute) * minute
  let era = 0
  // The finer interval reaches back to the first candle of the coarser one.
  const startOfEra = () => {
    const { size, count } = eras[era] ?? { size: 0, count: 0 }
    return Math.floor((end - count * size) / day) * day
  }
  let until = startOfEra()
  const makeSince = (fromMs: number): void => {
    for (let at = eras[era]; at && end > fromMs; at = eras[era]) {
      if (end <= until) {
        era += 1
        until = startOfEra()
        continue
      }
      end -= at.size
      newestFirst.push(previousCandle(walk, end, at.size, at.sigma))
    }
  }
  return {
    since(fromMs) {
      makeSince(fromMs)
      let [low, high] = [0, newestFirst.length]
      while (low < high) {
        const middle = (low + high) >> 1
        const candle = newestFirst[middle] as Candle
        if (candle.startMs + candle.spanMs > fromMs) low = middle + 1
        else high = middle
      }
      return newestFirst.slice(0, low).reverse()
    },
  }
}

const merge = (into: Candle, from: Candle): void => {
  into.high = Math.max(into.high, from.high)
  into.low = Math.min(into.low, from.low)
  into.close = from.close
  into.volume += from.volume
  into.trades += from.trades
}

/** Finer candles than the interval are merged; coarser ones are omitted. */
export const aggregate = (
  candles: Iterable<Candle>,
  interval: Interval,
  fromMs: number,
  toMs: number,
): Candle[] => {
  const out: Candle[] = []
  let last: Candle | undefined
  for (const candle of candles) {
    if (candle.spanMs > intervals[interval]) continue
    const startMs = bucketStart(candle.startMs, interval)
    if (startMs < bucketStart(fromMs, interval) || startMs > toMs) continue
    if (last?.startMs === startMs) merge(last, candle)
    else {
      last = { ...candle, startMs }
      out.push(last)
    }
  }
  return out
}

/** Intervals without a trade have the last price. */
export const fillGaps = (candles: readonly Candle[], interval: Interval): Candle[] => {
  const out: Candle[] = []
  for (const candle of candles) {
    for (let last = out.at(-1); last; last = out.at(-1)) {
      const startMs = bucketEnd(last.startMs, interval) + 1
      if (startMs >= candle.startMs) break
      const { close } = last
      out.push({ ...last, startMs, open: close, high: close, low: close, volume: 0, trades: 0 })
    }
    out.push(candle)
  }
  return out
}

export const liveCandlesMax = 10_080

/** Adds a trade, or only the price when nothing traded, to its minute. */
export const addTrade = (live: Candle[], timeMs: number, price: number, lots: number): void => {
  const startMs = Math.floor(timeMs / minute) * minute
  const last = live.at(-1)
  if (last?.startMs === startMs) {
    merge(last, { ...last, high: price, low: price, close: price, volume: lots, trades: lots > 0 ? 1 : 0 })
    return
  }
  const open = last?.close ?? price
  live.push({
    startMs,
    spanMs: minute,
    open,
    close: price,
    high: Math.max(open, price),
    low: Math.min(open, price),
    volume: lots,
    trades: lots > 0 ? 1 : 0,
  })
  if (live.length > liveCandlesMax) live.splice(0, live.length - liveCandlesMax)
}
