import {
  aggregate,
  bucketEnd,
  bucketStart,
  type Candle,
  createPast,
  fillGaps,
  type Interval,
  type Past,
} from './candles.ts'
import { one, priceText, rateText, sizeText, unitsText } from './decimal.ts'
import { impactPrice } from './funding.ts'
import { type Market, marginTables, markets, type Perp, perps, type Spot, spots, tokens } from './markets.ts'
import { bookOf, midOf, stateOf, type Venue } from './venue.ts'
import type { Json } from './views.ts'

const dayMs = 86_400_000
const minuteMs = 60_000

export const meta = (): Json => ({
  universe: perps.map((market) => ({
    szDecimals: market.sizeDecimals,
    name: market.coin,
    maxLeverage: market.maxLeverage,
    marginTableId: market.marginTable,
    ...(market.onlyIsolated ? { onlyIsolated: true } : {}),
    ...(market.delisted ? { isDelisted: true } : {}),
  })),
  marginTables: Object.keys(marginTables).map((id) => [Number(id), marginTable(Number(id))]),
  collateralToken: 0,
})

export const marginTable = (id: number): Json => {
  const table = marginTables[id]
  if (!table) return null
  return {
    description: table.description,
    marginTiers: table.tiers.map(({ lowerBoundUsd, maxLeverage }) => ({
      lowerBound: `${lowerBoundUsd}.0`,
      maxLeverage,
    })),
  }
}

/** The generated history of a market, made as far back as anybody has asked. */
const pastsByVenue = new WeakMap<Venue, Map<number, Past>>()

const pastOf = (venue: Venue, market: Market): Past => {
  const known = pastsByVenue.get(venue) ?? new Map<number, Past>()
  pastsByVenue.set(venue, known)
  const past = known.get(market.asset)
  if (past) return past
  const { seed, genesisMs } = venue.state
  const made = createPast({
    seed: seed + market.asset,
    genesisMs,
    price: Math.round(market.startUsd * one),
    lotsPerMinute: (25_000 / market.startUsd) * 10 ** market.sizeDecimals,
  })
  known.set(market.asset, made)
  return made
}

/**
 * Generated and recorded candles in one list without gaps, up to the present one. A time without trades, such as one that
 * was skipped, has the price before it.
 */
export const candlesOf = (
  venue: Venue,
  market: Market,
  interval: Interval,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Candle[] => {
  const { live } = stateOf(venue, market.asset)
  const { genesisMs, nowMs } = venue.state
  const firstMs = bucketStart(fromMs, interval)
  const earlier = live.findLast(({ startMs }) => startMs <= firstMs)
  const sinceMs = Math.min(firstMs, bucketStart(earlier?.startMs ?? genesisMs - minuteMs, interval))
  const traded = [...pastOf(venue, market).since(sinceMs), ...live]
  const close = traded.at(-1)?.close
  const present = close === undefined ? [] : [untraded(close, bucketStart(nowMs, '1m'))]
  const all = aggregate([...traded, ...present], interval, sinceMs, Math.max(toMs, nowMs))
  return fillGaps(all, interval).filter(({ startMs }) => startMs >= firstMs && startMs <= toMs)
}

const untraded = (price: number, startMs: number): Candle => ({
  startMs,
  spanMs: minuteMs,
  open: price,
  high: price,
  low: price,
  close: price,
  volume: 0,
  trades: 0,
})

export const candleView = (market: Market, interval: Interval, candle: Candle): Json => ({
  t: candle.startMs,
  T: bucketEnd(candle.startMs, interval),
  s: market.coin,
  i: interval,
  o: priceText(candle.open),
  c: priceText(candle.close),
  h: priceText(candle.high),
  l: priceText(candle.low),
  v: sizeText(candle.volume, market.sizeDecimals),
  n: candle.trades,
})

type Day = { previous: number; base: number; quote: number }

const days = new WeakMap<Venue, Map<number, Day & { minute: number }>>()

/** Volumes of the last day, recomputed once a minute. */
const dayOf = (venue: Venue, market: Market): Day => {
  const minute = Math.floor(venue.state.nowMs / 60_000)
  const known = days.get(venue) ?? new Map<number, Day & { minute: number }>()
  days.set(venue, known)
  const cached = known.get(market.asset)
  if (cached?.minute === minute) return cached
  const candles = candlesOf(venue, market, '15m', {
    fromMs: venue.state.nowMs - dayMs,
    toMs: venue.state.nowMs,
  })
  const lots = candles.reduce((sum, { volume }) => sum + volume, 0)
  const base = lots / 10 ** market.sizeDecimals
  const quote = candles.reduce(
    (sum, { volume, close }) => sum + (volume / 10 ** market.sizeDecimals) * (close / one),
    0,
  )
  const previous = candles[0]?.open ?? stateOf(venue, market.asset).mark
  const made = { minute, previous, base, quote }
  known.set(market.asset, made)
  return made
}

const number = (value: number, places: number): string =>
  unitsText(BigInt(Math.round(value * 10 ** places)), places)

/** Half a tick is a possible middle. */
export const midText = (venue: Venue, asset: number): string | null => {
  const mid = midOf(venue, asset)
  return mid === undefined ? null : priceText(Math.floor(mid))
}

const openInterest = (venue: Venue, market: Perp): number => {
  let lots = 0
  for (const account of venue.state.accounts.values())
    lots += Math.max(0, account.positions.get(market.asset)?.size ?? 0)
  return lots
}

export const perpContext = (venue: Venue, market: Perp): Record<string, Json> => {
  const state = stateOf(venue, market.asset)
  const day = dayOf(venue, market)
  const bid = impactPrice(venue, market, { buy: false })
  const ask = impactPrice(venue, market, { buy: true })
  return {
    funding: rateText(state.rate),
    openInterest: sizeText(openInterest(venue, market), market.sizeDecimals),
    prevDayPx: priceText(day.previous),
    dayNtlVlm: number(day.quote, 6),
    premium: market.delisted ? null : rateText(state.premium.last),
    oraclePx: priceText(state.oracle),
    markPx: priceText(state.mark),
    midPx: midText(venue, market.asset),
    impactPxs:
      bid === undefined || ask === undefined
        ? null
        : [priceText(Math.round(bid)), priceText(Math.round(ask))],
    dayBaseVlm: number(day.base, market.sizeDecimals),
  }
}

export const spotContext = (venue: Venue, market: Spot): Record<string, Json> => {
  const state = stateOf(venue, market.asset)
  const day = dayOf(venue, market)
  return {
    prevDayPx: priceText(day.previous),
    dayNtlVlm: number(day.quote, 6),
    markPx: priceText(state.mark),
    midPx: midText(venue, market.asset),
    circulatingSupply: `${market.base.supply}.0`,
    coin: market.coin,
    totalSupply: `${market.base.supply}.0`,
    dayBaseVlm: number(day.base, market.sizeDecimals),
  }
}

export const perpContexts = (venue: Venue): Json[] => perps.map((market) => perpContext(venue, market))
export const spotContexts = (venue: Venue): Json[] => spots.map((market) => spotContext(venue, market))

export const spotMeta = (): Json => ({
  universe: spots.map(({ base, quote, coin, index, canonical }) => ({
    tokens: [base.index, quote.index],
    name: coin,
    index,
    isCanonical: canonical,
  })),
  tokens: tokens.map((token) => ({
    name: token.name,
    szDecimals: token.sizeDecimals,
    weiDecimals: token.weiDecimals,
    index: token.index,
    tokenId: token.tokenId,
    isCanonical: token.canonical,
    evmContract: null,
    fullName: token.fullName,
    deployerTradingFeeShare: '0.0',
  })),
})

export const allMids = (venue: Venue): Record<string, string> =>
  Object.fromEntries(
    markets.map(({ coin, asset }) => [coin, midText(venue, asset) ?? priceText(stateOf(venue, asset).mark)]),
  )

const levelsShown = 20

/** Merges levels at a coarser tick; bids round down, asks up, so that no level looks better than it is. */
const aggregatePrice = (
  price: number,
  { buy }: { buy: boolean },
  figures: number,
  mantissa: number,
): number => {
  let step = 1
  while (price / step >= 10 ** figures) step *= 10
  step *= mantissa
  return buy ? Math.floor(price / step) * step : Math.ceil(price / step) * step
}

export const levels = (
  venue: Venue,
  market: Market,
  figures: number | null,
  mantissa: number | null,
): Json[] =>
  [true, false].map((buy) => {
    const depth = bookOf(venue, market.asset).depth({ buy }, figures === null ? levelsShown : 1_000)
    const joined = new Map<number, { size: number; count: number }>()
    for (const { price, size, count } of depth) {
      const at = figures === null ? price : aggregatePrice(price, { buy }, figures, mantissa ?? 1)
      const level = joined.get(at) ?? { size: 0, count: 0 }
      level.size += size
      level.count += count
      joined.set(at, level)
    }
    return [...joined].slice(0, levelsShown).map(([price, { size, count }]) => ({
      px: priceText(price),
      sz: sizeText(size, market.sizeDecimals),
      n: count,
    }))
  })

export const l2Book = (
  venue: Venue,
  market: Market,
  figures: number | null,
  mantissa: number | null,
): Json => {
  const bid = bookOf(venue, market.asset).best({ buy: true })
  const ask = bookOf(venue, market.asset).best({ buy: false })
  const spread = bid === undefined || ask === undefined ? 0 : ask - bid
  return {
    coin: market.coin,
    time: venue.state.nowMs,
    levels: levels(venue, market, figures, mantissa),
    ...(figures === null ? {} : { spread: priceText(spread) }),
  }
}
