import { decimalText } from '#market/decimal-text.ts'
import { stopAtrs, targetAtrs } from '#market/trading-rules.ts'
import type { CandleWindow, Windows } from './candle-columns.ts'
import { clippedLeverage, entryRefusal, sizeEntry } from './entry.ts'
import { positionsExit } from './exit-intents.ts'
import { protectiveOrders } from './protective-orders.ts'
import {
  type Decision,
  type DecisionConfig,
  type FarmingConfig,
  hold,
  type MarketRules,
  type StrategyState,
} from './strategy.ts'
import { closesOf, readIndicator } from './window-indicators.ts'

/** Day trades: entries with a pullback of a trend, a bracket around each, and nothing over night. */

export const farmingSpanMs = 15 * 60_000
export const farmingAssets = ['BTC', 'ETH', 'SOL'] as const
/** Everything is closed this long before the end of the local day, and again each minute until nothing is left. */
export const flatBeforeMs = 5 * 60_000
export const entriesPerDayMax = 3
/** A pullback of an upward trend is below the first, one of a downward trend above the second. */
export const pullback = { long: 40, short: 60 }

const isDayOver = ({ now_ms, day_ends_ms }: StrategyState): boolean => now_ms >= day_ends_ms - flatBeforeMs

/** Returns the exit of what is open at the end of the day; undefined before it, or where nothing is open. */
export function farmingDayEnd(state: StrategyState, _strategy: FarmingConfig): Decision | undefined {
  if (!isDayOver(state)) return undefined
  const orders = positionsExit(state)
  return orders.length > 0 ? { action: 'exit', reason: 'day_ends', figures: {}, orders } : undefined
}

/** Whether a day trade is open after the day on which it was opened, at the end of which nobody has looked at it. */
export const isOvernight = (
  positions: Iterable<{ openedMs: number }>,
  { nowMs, dayEndOf }: { nowMs: number; dayEndOf: (atMs: number) => number },
): boolean => [...positions].some(({ openedMs }) => dayEndOf(openedMs) <= nowMs)

type Signal = { side: 'long' | 'short'; figures: Decision['figures'] } | Decision

function signalOf(window: CandleWindow): Signal {
  const fast = readIndicator(window, 'ema_20').now
  const slow = readIndicator(window, 'ema_50').now
  const strength = readIndicator(window, 'rsi_14').now
  const side = fast > slow ? 'long' : fast < slow ? 'short' : undefined
  const figures = {
    rsi_14: decimalText(strength) ?? '0',
    ema_20: decimalText(fast) ?? '0',
    ema_50: decimalText(slow) ?? '0',
  }
  if (!side) return hold('no_trend', figures)
  if (side === 'long' && !(strength < pullback.long)) return hold('rsi_not_low', figures)
  if (side === 'short' && !(strength > pullback.short)) return hold('rsi_not_high', figures)
  return { side, figures }
}

export function decideFarming(
  windows: Windows,
  state: StrategyState,
  { strategy, markets }: DecisionConfig & { strategy: FarmingConfig },
): Decision {
  const { asset } = strategy
  const [window, rules] = [windows[asset], markets[asset]]
  if (!window || !rules || window.spanMs !== farmingSpanMs) return hold('market_closed')
  if (isDayOver(state)) return hold('day_ends')
  if (state.positions[asset]) return hold('position_open')
  if (state.entries_today >= entriesPerDayMax) return hold('entries_of_the_day_used')
  const signal = signalOf(window)
  if ('action' in signal) return signal
  const { side, figures } = signal
  const order = side === 'long' ? 'buy' : 'sell'
  // An order of the strategy or its user that could still open a position keeps it from opening another one.
  if ((state.resting[asset]?.length ?? 0) > 0) return hold('order_resting')
  return entryRefusal(state, asset, order) ?? entryOf(window, rules, { strategy, state, side, figures })
}

type Entry = {
  strategy: FarmingConfig
  state: StrategyState
  side: 'long' | 'short'
  figures: Decision['figures']
}

function entryOf(
  window: CandleWindow,
  rules: MarketRules,
  { strategy, state, side, figures }: Entry,
): Decision {
  const { asset, is_cross, order_notional_usd, order_size, slippage_bps } = strategy
  const leverage = clippedLeverage(strategy.leverage, rules)
  const { now: price } = closesOf(window)
  const wanted = order_size === undefined ? { usd: order_notional_usd ?? '0' } : { size: order_size }
  const order = side === 'long' ? 'buy' : 'sell'
  const plan = { asset, side: order, price, slippageBps: slippage_bps, leverage, rules, wanted } as const
  const entry = sizeEntry(plan, state)
  if ('action' in entry) return entry
  const exits = protectiveOrders(window, price, {
    side,
    rules,
    stopAtrs,
    targetAtrs,
    isMarket: { stop: strategy.sl_is_market, target: strategy.tp_is_market },
    marginOf: { leverage, is_cross, micros: entry.micros },
    state,
  })
  if ('action' in exits) return exits
  return {
    action: 'enter',
    reason: side === 'long' ? 'pullback_of_uptrend' : 'pullback_of_downtrend',
    figures: { ...figures, price: entry.priceText },
    orders: [
      {
        asset,
        side: order,
        order_type: 'market',
        size: entry.size,
        ...(entry.usdMax !== undefined && { usd_max: entry.usdMax }),
        reduce_only: false,
        leverage,
        is_cross,
        slippage_bps,
        ...exits,
      },
    ],
  }
}
