import { priceOnTick, tickSizeAt } from '#market/tick-size.ts'
import type { CandleWindow } from './candle-columns.ts'
import { liquidationDistance, marginShareOf } from './entry.ts'
import { type Decision, hold, type MarketRules, type OrderIntent, type StrategyState } from './strategy.ts'
import { readIndicator } from './window-indicators.ts'

/** A stop is at least this many ticks away from the entry. */
const stopTicksMin = 2
/** A stop is within this share of the distance to the liquidation. */
const liquidationShareMax = 0.6

export type ProtectionPlan = {
  side: 'long' | 'short'
  rules: MarketRules
  /** Distances in ATRs; undefined: no such order. */
  stopAtrs: number | undefined
  targetAtrs: number | undefined
  isMarket: { stop: boolean; target: boolean }
  marginOf: { leverage: number; is_cross: boolean; micros: bigint }
  state: StrategyState
}
type Protection = Pick<OrderIntent, 'take_profit' | 'stop_loss'>

/** Returns the stop and the target of an entry on ticks of the market, or why the entry may not be made with them. */
export function protectiveOrders(
  window: CandleWindow,
  entry: number,
  plan: ProtectionPlan,
): Protection | Decision {
  const { side, rules, stopAtrs, targetAtrs, isMarket } = plan
  const { now: atr } = readIndicator(window, 'atr_14')
  const sign = side === 'long' ? 1 : -1
  const stop = stopAtrs === undefined ? undefined : entry - sign * stopAtrs * atr
  const target = targetAtrs === undefined ? undefined : entry + sign * targetAtrs * atr
  const stopText = stop === undefined ? undefined : priceOnTick(stop, rules.price_decimals)
  const targetText = target === undefined ? undefined : priceOnTick(target, rules.price_decimals)
  if ((stop !== undefined && stopText === undefined) || (target !== undefined && targetText === undefined))
    return hold('no_price_for_exits')
  if (stopText !== undefined) {
    const refusal = stopRefusal(entry, Number(stopText), plan)
    if (refusal) return refusal
  }
  return {
    ...(targetText !== undefined && { take_profit: { price: targetText, is_market: isMarket.target } }),
    ...(stopText !== undefined && { stop_loss: { price: stopText, is_market: isMarket.stop } }),
  }
}

function stopRefusal(entry: number, stop: number, plan: ProtectionPlan): Decision | undefined {
  const { side, rules, marginOf, state } = plan
  const distance = side === 'long' ? entry - stop : stop - entry
  if (!(distance >= stopTicksMin * tickSizeAt(entry, rules.price_decimals) * (1 - 1e-9)))
    return hold('stop_too_close', { stop: String(stop) })
  if (rules.kind === 'spot') return undefined
  const share = marginShareOf(marginOf, marginOf.micros, state)
  const liquidation = liquidationDistance(side, share, rules) * entry
  return distance <= liquidationShareMax * liquidation
    ? undefined
    : hold('stop_beyond_liquidation', { stop: String(stop) })
}
