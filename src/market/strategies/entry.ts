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

/** How far from the middle price a market order may fill that says nothing else, in hundredths of a percent. */
export const defaultSlippageBps = 50

/** How much the price may rise between a decision and the acceptance of its order, in hundredths of a percent. */
export const riseBps = 10

export type EntryPlan = {
  asset: string
  side: 'buy' | 'sell'
  price: number
  /** How far from the price the order may fill, in hundredths of a percent; 0 for an order with a limit. */
  slippageBps: number
  leverage: number
  rules: MarketRules
  /** What to spend, or how much to trade. */
  wanted: { usd: string } | { size: string }
  /** Whether an entry that exceeds the funds left is made smaller instead of refused. */
  partial?: boolean
}
export type SizedEntry = {
  size: string
  /** What the entry costs at most. */
  micros: bigint
  priceText: string
  /** What an entry that is sized by its worth may cost at most, also after the price has moved. */
  usdMax?: string
}

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

/** An entry may be smaller by this part, which is more than its fee. */
const feeShare = 1_000n

/** Prices of an entry: `spent` is what a unit costs at most, `valued` that by which the venue values the order. */
function entryPrices({ price, slippageBps, side }: EntryPlan): { spent: string; valued: string } | undefined {
  const [middle, bound] = [price, price * (1 + ((side === 'buy' ? 1 : -1) * slippageBps) / 10_000)].map(
    decimalText,
  )
  if (middle === undefined || bound === undefined || !(price > 0)) return undefined
  return side === 'buy' ? { spent: bound, valued: middle } : { spent: middle, valued: bound }
}

/**
 * Rounds an entry down to lots of its market, or says why there is none. Limits count an order at its worst price, so it
 * is sized by that: an order of as much as a limit allows is within the limit.
 */
export function sizeEntry(plan: EntryPlan, state: StrategyState): SizedEntry | Decision {
  const { rules, leverage, wanted, partial = false } = plan
  const { size_decimals: decimals } = rules
  const prices = entryPrices(plan)
  const priceText = decimalText(plan.price)
  if (prices === undefined || priceText === undefined) return hold('market_closed')
  const limit = spendableMicros(state, leverage)
  const wantedMicros =
    'usd' in wanted
      ? toMicros(wanted.usd)
      : valueMicros(lotsOf(wanted.size, rules), decimals, prices.spent, 'up')
  // Where nothing else is left for it, the fee comes out of the amount.
  const isShort = wantedMicros - wantedMicros / feeShare > limit.micros
  if (isShort && !partial)
    return hold(limit.reason, {
      required_usd: fromUnits(wantedMicros, usdDecimals),
      available_usd: fromUnits(limit.micros, usdDecimals),
    })
  const micros = wantedMicros > limit.micros ? limit.micros : wantedMicros
  const isByWorth = 'usd' in wanted || micros < wantedMicros
  const units = isByWorth ? unitsWorth(micros, decimals, prices.spent) : lotsOf(wanted.size, rules)
  const worth = valueMicros(units, decimals, prices.valued)
  if (units === 0n || worth < toMicros(rules.min_order_usd))
    return hold(micros < wantedMicros ? limit.reason : 'below_minimum', {
      order_usd: fromUnits(worth, usdDecimals),
      minimum_usd: rules.min_order_usd,
    })
  return {
    size: fromUnits(units, decimals),
    micros: valueMicros(units, decimals, prices.spent, 'up'),
    priceText,
    ...(isByWorth && { usdMax: fromUnits(micros, usdDecimals) }),
  }
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
