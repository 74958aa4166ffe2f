import type { Candle } from './candle.ts'
import { indicatorAt } from './indicator-list.ts'
import type { IndicatorSet } from './indicators.ts'
import { type Exits, exitsOf, type Rule, type Side } from './trading-rules.ts'

/**
 * This module computes the trades that a rule would have made. The rule decides on a close and is filled at the next
 * open. It has one position at a time, whose stop and target are resting orders from that open on.
 */

/** Costs are fractions. The venue charges its base tier; slippage is added to orders that take liquidity. */
export type Costs = { taker: number; maker: number; slippage: number }
export const venueCosts: Costs = { taker: 0.00045, maker: 0.00015, slippage: 0.0005 }

/**
 * A funding rate is the share of the position that longs pay to shorts at a time; if it is negative, shorts pay.
 */
export type FundingRate = { atMs: number; rate: number }

export type Trade = {
  side: Side
  entryMs: number
  entry: number
  exitMs: number
  exit: number
  reason: 'stop' | 'target'
  /** The fees, the funding and the net result, as fractions of the position. */
  fees: number
  funding: number
  net: number
}

export type Simulation = {
  trades: readonly Trade[]
  /** The worth of one dollar, traded by the rule, at each close since the first possible entry. */
  equity: readonly number[]
  /** The first candle at which the rule could enter, and the last one. */
  firstAt: number
  lastAt: number
}

type Position = { side: Side; entryAt: number; entry: number; exits: Exits }
export type Market = {
  candles: readonly Candle[]
  set: IndicatorSet
  /** The funding rates, oldest first. */
  funding: readonly FundingRate[]
}

const signOf = (side: Side): number => (side === 'long' ? 1 : -1)

/**
 * Returns the exit within a candle. If the candle reaches both stop and target, the stop counts. A gap beyond the
 * stop fills at the open, which is worse.
 */
function exitIn(
  { open, high, low }: Candle,
  { side, exits }: Position,
): Pick<Trade, 'exit' | 'reason'> | undefined {
  const { stop, target } = exits
  if (side === 'long') {
    if (low <= stop) return { exit: Math.min(stop, open), reason: 'stop' }
    return high >= target ? { exit: target, reason: 'target' } : undefined
  }
  if (high >= stop) return { exit: Math.max(stop, open), reason: 'stop' }
  return low <= target ? { exit: target, reason: 'target' } : undefined
}

function fundingPaid(funding: readonly FundingRate[], fromMs: number, toMs: number): number {
  let sum = 0
  for (const { atMs, rate } of funding) if (atMs > fromMs && atMs <= toMs) sum += rate
  return sum
}

function tradeOf(position: Position, candle: Candle, market: Market, costs: Costs): Trade | undefined {
  const found = exitIn(candle, position)
  if (!found) return undefined
  const { side, entry } = position
  const sign = signOf(side)
  // A target rests in the book, so it pays the maker fee; a stop takes liquidity.
  const exit = found.reason === 'stop' ? found.exit * (1 - sign * costs.slippage) : found.exit
  const fees = costs.taker + (found.reason === 'stop' ? costs.taker : costs.maker) * (exit / entry)
  const entryMs = market.candles[position.entryAt]?.startMs ?? candle.startMs
  const funding = sign * fundingPaid(market.funding, entryMs, candle.endMs)
  const net = (sign * (exit - entry)) / entry - fees - funding
  return { side, entryMs, entry, exitMs: candle.endMs, exit, reason: found.reason, fees, funding, net }
}

/** Returns the first candle whose close the rule can judge, because its EMA 50 has enough candles before it. */
const firstDecision = ({ candles, set }: Market): number => {
  const at = candles.findIndex((_, index) => indicatorAt(set, 'ema_50', index) !== undefined)
  return at < 0 ? candles.length : at
}

export function simulate(rule: Rule, market: Market, costs: Costs): Simulation {
  const { candles, set } = market
  const first = firstDecision(market)
  const trades: Trade[] = []
  const equity: number[] = []
  let settled = 1
  let position: Position | undefined
  for (let at = first + 1; at < candles.length; at++) {
    const candle = candles[at]
    if (!candle) break
    if (!position) {
      const side = rule.decide(candles, set, at - 1)
      const atr = indicatorAt(set, 'atr_14', at - 1)
      if (side && atr !== undefined) {
        const entry = candle.open * (1 + signOf(side) * costs.slippage)
        position = { side, entryAt: at, entry, exits: exitsOf(side, entry, atr) }
      }
    }
    const trade = position && tradeOf(position, candle, market, costs)
    if (trade) {
      trades.push(trade)
      settled *= 1 + trade.net
      position = undefined
    }
    const open = position ? (signOf(position.side) * (candle.close - position.entry)) / position.entry : 0
    equity.push(settled * (1 + open))
  }
  return { trades, equity, firstAt: Math.min(first + 1, candles.length), lastAt: candles.length - 1 }
}
