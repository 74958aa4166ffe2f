import { decimalText } from '#market/decimal-text.ts'
import { priceOnTick } from '#market/tick-size.ts'
import type { CandleWindow, Windows } from './candle-columns.ts'
import { clippedLeverage, entryRefusal, sizeEntry } from './entry.ts'
import { exitIntent } from './exit-intents.ts'
import { protectiveOrders } from './protective-orders.ts'
import {
  type Condition,
  type ConditionConfig,
  type Decision,
  type DecisionConfig,
  hold,
  type MarketRules,
  type Operand,
  type StrategyState,
} from './strategy.ts'
import { closesOf, type LastTwo, readIndicator } from './window-indicators.ts'

const readOperand = (window: CandleWindow, operand: Operand): LastTwo => {
  if (operand === 'price') return closesOf(window)
  if (typeof operand === 'string') return readIndicator(window, operand)
  const value = Number(operand.value)
  return { before: value, now: value }
}

type Judged = { isTrue: boolean; left: LastTwo }

function judge(window: CandleWindow, condition: Condition): Judged {
  const [left, right] = [readOperand(window, condition.left), readOperand(window, condition.right)]
  const isAbove = left.now > right.now
  const isBelow = left.now < right.now
  switch (condition.is) {
    case 'above':
      return { isTrue: isAbove, left }
    case 'below':
      return { isTrue: isBelow, left }
    case 'crosses_above':
      return { isTrue: isAbove && left.before <= right.before, left }
    case 'crosses_below':
      return { isTrue: isBelow && left.before >= right.before, left }
  }
}

const nameOf = (operand: Operand): string => (typeof operand === 'string' ? operand : operand.value)

/** Returns the first condition that is not true, or undefined where all of them are. */
function unmet(window: CandleWindow, conditions: readonly Condition[]): Decision | undefined {
  for (const condition of conditions) {
    const { isTrue, left } = judge(window, condition)
    if (!isTrue)
      return hold(`${condition.left}_not_${condition.is}`, {
        [condition.left]: decimalText(left.now) ?? '0',
        bound: nameOf(condition.right),
      })
  }
  return undefined
}

/**
 * The resting order that a condition on one price is: it waits at the venue, where no close can be missed. A better price
 * than the present one is a limit, a worse one a stop. Undefined where the condition is more than one price.
 */
export function restingPrice({ enter_if, side }: ConditionConfig): RestingPrice | undefined {
  const [condition] = enter_if
  if (!condition || enter_if.length > 1 || condition.left !== 'price') return undefined
  if (typeof condition.right === 'string') return undefined
  const isFalling = condition.is === 'below' || condition.is === 'crosses_below'
  return { price: condition.right.value, order_type: isFalling === (side === 'long') ? 'limit' : 'stop' }
}
export type RestingPrice = { price: string; order_type: 'limit' | 'stop' }

/** Returns the resting order unless the price is beyond it already: then the close decides, since a venue would fill it at once. */
function waitingPrice(window: CandleWindow, strategy: ConditionConfig): RestingPrice | undefined {
  const resting = restingPrice(strategy)
  if (!resting) return undefined
  const { now } = closesOf(window)
  const isFalling = (resting.order_type === 'limit') === (strategy.side === 'long')
  const isBeyond = isFalling ? now < Number(resting.price) : now > Number(resting.price)
  return isBeyond ? undefined : resting
}

type ConditionStrategy = DecisionConfig & { strategy: ConditionConfig }

export function decideCondition(
  windows: Windows,
  state: StrategyState,
  { strategy, markets }: ConditionStrategy,
): Decision {
  const { asset } = strategy
  const [window, rules] = [windows[asset], markets[asset]]
  if (!window || !rules) return hold('market_closed')
  const position = state.positions[asset]
  if (!position) return decideEntry(window, rules, state, strategy)
  if (!strategy.exit_if || strategy.exit_if.length === 0) return hold('position_open')
  const missing = unmet(window, strategy.exit_if)
  if (missing) return missing
  return {
    action: 'exit',
    reason: 'exit_conditions_true',
    figures: {},
    orders: [exitIntent(asset, position)],
  }
}

function decideEntry(
  window: CandleWindow,
  rules: MarketRules,
  state: StrategyState,
  strategy: ConditionConfig,
): Decision {
  const { asset, order_usd, is_cross, slippage_bps } = strategy
  const side = strategy.side === 'long' ? ('buy' as const) : ('sell' as const)
  if (side === 'sell' && rules.kind === 'spot') return hold('market_closed')
  if (state.resting[asset]?.includes(side)) return hold('order_resting')
  const resting = waitingPrice(window, strategy)
  if (!resting) {
    const missing = unmet(window, strategy.enter_if)
    if (missing) return missing
  }
  const refusal = entryRefusal(state, asset, side)
  if (refusal) return refusal
  const leverage = clippedLeverage(strategy.leverage, rules)
  const price = resting ? Number(resting.price) : closesOf(window).now
  // An order that rests to enter fills at its own price or a better one.
  const slippageBps = resting?.order_type === 'limit' ? 0 : slippage_bps
  const entry = sizeEntry(
    { asset, side, price, slippageBps, leverage, rules, wanted: { usd: order_usd } },
    state,
  )
  if ('action' in entry) return entry
  const exits = protectiveOrders(window, price, {
    side: strategy.side,
    rules,
    stopAtrs: percent(strategy.stop_atr_pct),
    targetAtrs: percent(strategy.target_atr_pct),
    isMarket: { stop: true, target: true },
    marginOf: { leverage, is_cross, micros: entry.micros },
    state,
  })
  if ('action' in exits) return exits
  const onTick = resting && priceOnTick(price, rules.price_decimals)
  return {
    action: 'enter',
    reason: resting ? 'order_placed' : 'entry_conditions_true',
    figures: { price: entry.priceText },
    orders: [
      {
        asset,
        side,
        size: entry.size,
        reduce_only: false,
        ...(resting && onTick !== undefined
          ? { order_type: resting.order_type, price: onTick }
          : {
              order_type: 'market' as const,
              slippage_bps,
              ...(entry.usdMax !== undefined && { usd_max: entry.usdMax }),
            }),
        ...(rules.kind === 'perp' && { leverage, is_cross }),
        ...exits,
      },
    ],
  }
}

const percent = (value: number | undefined): number | undefined =>
  value === undefined ? undefined : value / 100
