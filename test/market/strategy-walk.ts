import type { CandleColumns } from '#market/strategies/candle-columns.ts'
import type {
  DecisionConfig,
  FarmingConfig,
  MarketRules,
  StrategyState,
} from '#market/strategies/strategy.ts'
import { randomOf } from './price-walk.ts'

/** Seeded candles by column, and the settings of strategies that read them. */

export const minuteMs = 60_000
export const quarterMs = 15 * minuteMs
export const dayMs = 86_400_000
export const walkStartMs = Date.UTC(2026, 0, 5)

export const bitcoin: MarketRules = {
  kind: 'perp',
  size_decimals: 5,
  price_decimals: 1,
  leverage_max: 20,
  venue_leverage_max: 40,
  min_order_usd: '10',
}

type Walk = {
  seed: number
  count: number
  spanMs?: number
  volatility?: number
  price?: number
  startMs?: number
}

/** A walk on whole dollars, whose trend turns from time to time. */
export function columnWalk({
  seed,
  count,
  spanMs = minuteMs,
  volatility = 0.0006,
  price = 100_000,
  startMs = walkStartMs,
}: Walk): CandleColumns {
  const next = randomOf(seed)
  const normal = () => next() + next() + next() + next() - 2
  const columns: CandleColumns = {
    spanMs,
    startMs: new Float64Array(count),
    open: new Float64Array(count),
    high: new Float64Array(count),
    low: new Float64Array(count),
    close: new Float64Array(count),
    volume: new Float64Array(count),
  }
  let [last, drift] = [price, 0]
  for (let at = 0; at < count; at++) {
    if (next() < 0.002) drift = normal() * volatility * 0.15
    const open = last
    const close = Math.max(10, Math.round(open * (1 + drift + normal() * volatility)))
    columns.startMs[at] = startMs + at * spanMs
    columns.open[at] = open
    columns.close[at] = close
    columns.high[at] = Math.round(Math.max(open, close) * (1 + next() * volatility * 0.5))
    columns.low[at] = Math.round(Math.min(open, close) * (1 - next() * volatility * 0.5))
    columns.volume[at] = 1 + Math.round(next() * 20)
    last = close
  }
  return columns
}

export const partOf = (columns: CandleColumns, from: number, to: number): CandleColumns => ({
  spanMs: columns.spanMs,
  startMs: columns.startMs.slice(from, to),
  open: columns.open.slice(from, to),
  high: columns.high.slice(from, to),
  low: columns.low.slice(from, to),
  close: columns.close.slice(from, to),
  volume: columns.volume.slice(from, to),
})

export const farming: FarmingConfig = {
  type: 'day_trade_farming',
  asset: 'BTC',
  order_notional_usd: '500',
  leverage: 5,
  is_cross: true,
  slippage_bps: 50,
  tp_is_market: true,
  sl_is_market: true,
}

export const configOf = (
  strategy: DecisionConfig['strategy'],
  rules: MarketRules = bitcoin,
): DecisionConfig => ({
  strategy,
  markets: { BTC: rules, ETH: { ...rules, size_decimals: 4, price_decimals: 2 } },
})

export const flatState: StrategyState = {
  now_ms: walkStartMs,
  day_ends_ms: walkStartMs + dayMs,
  equity_usd: '1000',
  available_usd: '1000',
  budget_left_usd: null,
  blocked_by: null,
  must_flatten: false,
  entries_today: 0,
  positions: {},
  resting: {},
  foreign: [],
}

export const midnights = (fromMs: number, days: number): number[] =>
  Array.from({ length: days + 1 }, (_, day) => (Math.floor(fromMs / dayMs) + 1 + day) * dayMs)
