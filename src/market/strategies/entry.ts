import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import {
  fixedPointOne,
  fromUnits,
  mulDiv,
  rescale,
  toFixedPoint,
  toMicros,
  toUnits,
  unitsWorth,
  usdDecimals,
  valueMicros,
} from '#kernel/money/money.ts'
import { decimalText } from '#market/decimal-text.ts'
import { type Decision, hold, type MarketRules, type StrategyState } from './strategy.ts'

/** What an entry is worth, how large it is, and whether the account may make it. */

/** The venue's fee of an order that takes liquidity, in parts per million. */
export const takerPpm = 450n
export const makerPpm = 150n
export const million = 1_000_000n

export type EntryPlan = {
  asset: string
  side: 'buy' | 'sell'
  price: number
  leverage: number
  rules: MarketRules
  /** What to spend, or how much to trade. */
  wanted: { usd: string } | { size: string }
  /** Whether less may be traded where less is left. */
  partial?: boolean
}
export type SizedEntry = { size: string; micros: bigint; priceText: string }

/** What forbids any entry now; the reasons that a market or a rule has come after it. */
export function entryRefusal(
  state: StrategyState,
  asset: string,
  side: 'buy' | 'sell',
): Decision | undefined {
  if (state.blocked_by !== null) return hold(`guard_${state.blocked_by}`)
  if (state.foreign.includes(asset)) return hold('foreign_position')
  // An order against an own one could trade with it.
  if (state.resting[asset]?.some((own) => own !== side)) return hold('own_order_on_other_side')
  return undefined
}

/** Rounds an entry down to lots of its market, or says why there is none. */
export function sizeEntry(plan: EntryPlan, state: StrategyState): SizedEntry | Decision {
  const { rules, price, leverage, wanted, partial = false } = plan
  const priceText = decimalText(price)
  if (priceText === undefined || !(price > 0)) return hold('market_closed')
  const limit = spendableMicros(state, leverage)
  const wantedMicros =
    'usd' in wanted
      ? toMicros(wanted.usd)
      : valueMicros(lotsOf(wanted.size, rules), rules.size_decimals, priceText, 'up')
  if (wantedMicros > limit.micros && !partial)
    return hold(limit.reason, {
      required_usd: fromUnits(wantedMicros, usdDecimals),
      available_usd: fromUnits(limit.micros, usdDecimals),
    })
  const micros = wantedMicros > limit.micros ? limit.micros : wantedMicros
  const units =
    'usd' in wanted || micros < wantedMicros
      ? unitsWorth(micros, rules.size_decimals, priceText)
      : lotsOf(wanted.size, rules)
  const worth = valueMicros(units, rules.size_decimals, priceText)
  if (units === 0n || worth < toMicros(rules.min_order_usd))
    return hold(micros < wantedMicros ? limit.reason : 'below_minimum', {
      order_usd: fromUnits(worth, usdDecimals),
      minimum_usd: rules.min_order_usd,
    })
  return { size: fromUnits(units, rules.size_decimals), micros: worth, priceText }
}

const lotsOf = (size: string, { size_decimals: decimals }: MarketRules): bigint =>
  rescale(toFixedPoint(size), 18, decimals)

/** The most that an entry may be worth, and which of the two bounds it is. */
function spendableMicros(
  { available_usd, budget_left_usd }: StrategyState,
  leverage: number,
): { micros: bigint; reason: string } {
  // The margin and the fee of the entry come out of what is available.
  const share = million / BigInt(leverage) + takerPpm
  const available = toUnits(available_usd, usdDecimals)
  const affordable = available <= 0n ? 0n : mulDiv(available, million, share)
  const budget = budget_left_usd === null ? undefined : toUnits(budget_left_usd, usdDecimals)
  return budget !== undefined && budget < affordable
    ? { micros: budget < 0n ? 0n : budget, reason: 'budget' }
    : { micros: affordable, reason: 'insufficient_balance' }
}

export const clippedLeverage = (leverage: number, rules: MarketRules): number =>
  rules.kind === 'spot' ? 1 : Math.max(1, Math.min(leverage, rules.leverage_max))

/** How far the price may go against a position before the venue liquidates it, as a fraction of the entry. */
export function liquidationDistance(
  side: 'long' | 'short',
  marginShare: number,
  { venue_leverage_max }: MarketRules,
): number {
  const maintenance = 1 / (2 * venue_leverage_max)
  return (marginShare - maintenance) / (side === 'long' ? 1 - maintenance : 1 + maintenance)
}

/** The margin behind an entry as a fraction of its worth: a cross position has the whole account behind it. */
export function marginShareOf(
  { leverage, is_cross }: { leverage: number; is_cross: boolean },
  micros: bigint,
  { available_usd }: StrategyState,
): number {
  const isolated = fixedPointOne / BigInt(leverage)
  const whole = mulDiv(toUnits(available_usd, usdDecimals), fixedPointOne, micros)
  return Number(is_cross && whole > isolated ? whole : isolated) / Number(fixedPointOne)
}

export const isMore = (a: string, b: string): boolean => compareDecimals(a, b) > 0
