import type { RuleIndicator } from './window-indicators.ts'

/**
 * What a strategy is, what it knows at a time, and what it decides: JSON alone, so that a decision can be repeated from
 * its record. Amounts are decimal text.
 */

/** What the venue says of a market. The policy bounds what orders are worth, and no leverage. */
export type MarketRules = {
  kind: 'perp' | 'spot'
  size_decimals: number
  price_decimals: number
  leverage_max: number
  /** The venue liquidates at half of the margin that its own highest leverage needs. */
  venue_leverage_max: number
  min_order_usd: string
}

export type Operand = RuleIndicator | 'price' | { value: string }
export type Condition = {
  left: RuleIndicator | 'price'
  is: 'above' | 'below' | 'crosses_above' | 'crosses_below'
  right: Operand
}

export type DcaConfig = {
  type: 'dca'
  asset: string
  amount_usd: string
  /** Nothing is bought above this price. */
  max_price?: string
  /** Whether a smaller amount is bought with what is left. */
  partial?: boolean
}
export type RebalanceConfig = {
  type: 'rebalance'
  /** Shares of the whole in hundredths of a percent; what is left of 10,000 stays in dollars. */
  targets: { asset: string; share_bps: number }[]
  /** An asset is traded if its share is off by at least this much. */
  band_bps: number
}
export type ConditionConfig = {
  type: 'condition'
  asset: string
  side: 'long' | 'short'
  order_usd: string
  leverage: number
  is_cross: boolean
  slippage_bps: number
  /** All of them must be true on a close. */
  enter_if: Condition[]
  /** All of them must be true on a close; without any, the position ends by its stop or target. */
  exit_if?: Condition[]
  /** Distances from the close of the entry, in hundredths of the ATR. */
  stop_atr_pct?: number
  target_atr_pct?: number
}
export type FarmingConfig = {
  type: 'day_trade_farming'
  asset: string
  order_notional_usd?: string
  order_size?: string
  leverage: number
  is_cross: boolean
  slippage_bps: number
  tp_is_market: boolean
  sl_is_market: boolean
}
export type StrategyConfig = DcaConfig | RebalanceConfig | ConditionConfig | FarmingConfig
/** The strategy with the rules of its markets. */
export type DecisionConfig = { strategy: StrategyConfig; markets: Readonly<Record<string, MarketRules>> }

export type HeldPosition = { side: 'long' | 'short'; size: string }
export type StrategyState = {
  now_ms: number
  /** The end of the local day. */
  day_ends_ms: number
  /** The worth of everything that the strategy has, and what of it no position needs. */
  equity_usd: string
  available_usd: string
  /** What the strategy may still spend; null without a budget. */
  budget_left_usd: string | null
  /** The guard that allows no entry. */
  blocked_by: string | null
  /** Whether a guard wants every position closed. */
  must_flatten: boolean
  /** Why everything that is open has to end now, as a code; without it, the strategy decides. */
  exit?: string
  entries_today: number
  /** The positions of this strategy alone. */
  positions: Readonly<Record<string, HeldPosition>>
  /** The sides of the account's open orders that do not only reduce, by asset. */
  resting: Readonly<Record<string, readonly ('buy' | 'sell')[]>>
  /** Assets in which the account has a position that the strategy has not opened. */
  foreign: readonly string[]
}

export type OrderIntent = {
  asset: string
  side: 'buy' | 'sell'
  order_type: 'market' | 'limit' | 'stop'
  size: string
  /** What a market order that opens may cost at most; absent where its size was asked for. */
  usd_max?: string
  /** The limit of a limit order, or the trigger of a stop order. */
  price?: string
  reduce_only: boolean
  leverage?: number
  is_cross?: boolean
  slippage_bps?: number
  take_profit?: ProtectiveOrder
  stop_loss?: ProtectiveOrder
}
export type ProtectiveOrder = { price: string; is_market: boolean }

export type Action = 'enter' | 'exit' | 'hold' | 'adjust'
export type Decision = {
  action: Action
  /** A code, such as `rsi_not_low`. */
  reason: string
  /** What the reason was read from. */
  figures: Readonly<Record<string, string>>
  orders: readonly OrderIntent[]
}

export const hold = (reason: string, figures: Decision['figures'] = {}): Decision => ({
  action: 'hold',
  reason,
  figures,
  orders: [],
})
