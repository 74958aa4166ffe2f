/** A seeded day of a market with many signals of day trades, and the 1,000 candles before it. */
import {
  type CandleColumns,
  type CandleWindow,
  windowAt,
  windowCandles,
} from '#market/strategies/candle-columns.ts'
import { decide } from '#market/strategies/decide.ts'
import { simulateStrategy } from '#market/strategies/simulation.ts'
import type { DecisionConfig, MarketRules, OrderIntent } from '#market/strategies/strategy.ts'
import {
  bitcoin,
  columnWalk,
  dayMs,
  farming,
  flatState,
  midnights,
  partOf,
  quarterMs,
} from './strategy-walk.ts'

export const quartersOfDay = 96
const searchedDays = 30
const walkPrice = 100_000

/** How the venue of the world trades a market; the decimals are those of its prices at this height. */
export const farmedMarkets = {
  BTC: { price: 100_000, decimals: 0, rules: bitcoin },
  ETH: { price: 3_000, decimals: 1, rules: { ...bitcoin, size_decimals: 4, price_decimals: 2 } },
  SOL: { price: 150, decimals: 2, rules: { ...bitcoin, size_decimals: 2, price_decimals: 4 } },
} as const satisfies Record<string, { price: number; decimals: number; rules: MarketRules }>
export type FarmedAsset = keyof typeof farmedMarkets
export const farmedAssets = Object.keys(farmedMarkets) as FarmedAsset[]

export type FarmingDay = {
  asset: FarmedAsset
  /** 1,000 candles, and then those of the day. */
  columns: CandleColumns
  /** The closes of the day after which a strategy without a position enters, by their number from 1, with the stop. */
  signals: ReadonlyMap<number, { isLong: boolean; stop: number }>
  /** Returns the price at the close of a quarter of the day, counted from 1. */
  priceAt(quarter: number): number
}

const configFor = (asset: FarmedAsset): DecisionConfig => ({
  strategy: { ...farming, asset, order_notional_usd: '300', leverage: 5, slippage_bps: 100 },
  markets: { [asset]: farmedMarkets[asset].rules },
})

export function farmingDay(
  asset: FarmedAsset,
  { seed, startMs }: { seed: number; startMs: number },
): FarmingDay {
  const whole = walkOf(asset, seed, searchedDays)
  return dayFrom(asset, partAt(whole, bestStart(whole, asset)), startMs)
}

/** Days of one walk that begin at the given times, each with as many entries at every so many quarters as there are. */
export function farmingDaysEvery(
  asset: FarmedAsset,
  { seed, startsMs, everyQuarters }: { seed: number; startsMs: readonly number[]; everyQuarters: number },
): FarmingDay[] {
  const searched = startsMs.length * 2 + 4
  const whole = walkOf(asset, seed, searched)
  const decided = Array.from({ length: (searched * quartersOfDay) / everyQuarters }, (_, n) => {
    const at = n * everyQuarters
    const window = windowAt(whole, windowCandles - 1 + at)!
    return { at, isEntry: entryAt(window, asset) !== undefined }
  })
  const entries = decided.filter(({ isEntry }) => isEntry).map(({ at }) => at)
  const within = (start: number) =>
    entries.filter((at) => at > start && at < start + quartersOfDay - everyQuarters).length
  const starts = decided
    .map(({ at }) => at)
    .filter((at) => at <= (searched - 1) * quartersOfDay)
    .sort((a, b) => within(b) - within(a) || a - b)
  return startsMs.map((startMs, n) => dayFrom(asset, partAt(whole, windowCandles + starts[n]!), startMs))
}

function walkOf(asset: FarmedAsset, seed: number, days: number): CandleColumns {
  const { price, decimals } = farmedMarkets[asset]
  const count = windowCandles + quartersOfDay * days
  const walk = columnWalk({ seed, count, spanMs: quarterMs, volatility: 0.003, price: walkPrice })
  const scaled = (values: Float64Array) =>
    values.map((value) => Number(((value * price) / walkPrice).toFixed(decimals)))
  return {
    ...walk,
    open: scaled(walk.open),
    high: scaled(walk.high),
    low: scaled(walk.low),
    close: scaled(walk.close),
  }
}

const partAt = (whole: CandleColumns, first: number): CandleColumns =>
  partOf(whole, first - windowCandles, first + quartersOfDay)

function dayFrom(asset: FarmedAsset, part: CandleColumns, startMs: number): FarmingDay {
  const columns = {
    ...part,
    startMs: part.startMs.map((_, at) => startMs + (at - windowCandles) * quarterMs),
  }
  return {
    asset,
    columns,
    signals: signalsOf(columns, asset),
    priceAt: (quarter) => columns.close[windowCandles - 1 + quarter]!,
  }
}

/** The place of the first candle of the day with the most entries. */
function bestStart(columns: CandleColumns, asset: FarmedAsset): number {
  const fromMs = columns.startMs[windowCandles]!
  const { decisions } = simulateStrategy({
    config: { decision: configFor(asset), guards: { on_trip: 'flatten' }, budgetMicros: null },
    assets: { [asset]: { signal: columns, execution: columns, funding: [] } },
    fromMs,
    toMs: columns.startMs.at(-1)! + quarterMs,
    dayEnds: midnights(fromMs, searchedDays + 1),
    initialMicros: 1_000_000_000n,
    slippagePpm: 500n,
  })
  const entries = decisions
    .filter(({ decision }) => decision.action === 'enter')
    .map(({ atMs }) => (atMs - fromMs) / quarterMs)
  const lastStart = (searchedDays - 1) * quartersOfDay
  const within = (start: number) =>
    entries.filter((at) => at > start && at < start + quartersOfDay - 8).length
  const starts = entries.map((at) => Math.min(lastStart, Math.max(0, at - 4)))
  const best = starts.toSorted((a, b) => within(b) - within(a) || a - b)[0] ?? 0
  return windowCandles + best
}

function signalsOf(columns: CandleColumns, asset: FarmedAsset): FarmingDay['signals'] {
  const signals = new Map<number, { isLong: boolean; stop: number }>()
  for (let quarter = 1; quarter <= quartersOfDay; quarter++) {
    const order = entryAt(windowAt(columns, windowCandles - 1 + quarter)!, asset)
    if (order?.stop_loss)
      signals.set(quarter, { isLong: order.side === 'buy', stop: Number(order.stop_loss.price) })
  }
  return signals
}

/** The entry after a close, if nothing is open and the local day is long. */
function entryAt(window: CandleWindow, asset: FarmedAsset): OrderIntent | undefined {
  const state = { ...flatState, now_ms: window.endMs, day_ends_ms: window.endMs + dayMs }
  return decide({ [asset]: window }, state, configFor(asset)).orders[0]
}
