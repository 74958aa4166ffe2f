import { bpsOf } from '#engines/strategy-terms/guard-config.ts'
import type { StrategyInput } from '#engines/strategy-terms/strategy-schemas.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/contract/fault.ts'
import type { CandleSpan } from '#market/candle.ts'
import { farmingAssets } from '#market/strategies/farming-rule.ts'
import type {
  Condition,
  ConditionConfig,
  FarmingConfig,
  StrategyConfig,
} from '#market/strategies/strategy.ts'
import { isRuleIndicator } from '#market/strategies/window-indicators.ts'
import type { PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'

/** Reads the fields of a strategy: each type has fields that it needs, and takes none of another type. */

type Field = Exclude<keyof StrategyInput, 'type'>
const required: Readonly<Record<StrategyInput['type'], readonly Field[]>> = {
  dca: ['asset', 'amount_usd'],
  rebalance: ['targets'],
  condition: ['asset', 'enter_if', 'order_notional_usd'],
  day_trade_farming: ['asset'],
}
const optional: Readonly<Record<StrategyInput['type'], readonly Field[]>> = {
  dca: ['max_price', 'partial'],
  rebalance: ['band_pct'],
  condition: [
    'interval',
    'side',
    'exit_if',
    'stop_atr',
    'target_atr',
    'slippage_pct',
    'leverage',
    'is_cross',
  ],
  day_trade_farming: [
    'order_notional_usd',
    'order_size',
    'slippage_pct',
    'leverage',
    'is_cross',
    'tp_is_market',
    'sl_is_market',
  ],
}

function assertFields({ type, ...fields }: StrategyInput, at: string): void {
  const allowed = [...required[type], ...optional[type]]
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined && !allowed.some((field) => field === name))
      throw invalid(`${at}.${name}`, 'extra_forbidden', `A strategy of the type ${type} takes no \`${name}\``)
  const missing = required[type].find((name) => fields[name] === undefined)
  if (missing !== undefined)
    throw invalid(
      `${at}.${missing}`,
      'missing',
      `Field required: a strategy of the type ${type} needs \`${missing}\``,
    )
}

function conditionsOf(wanted: NonNullable<StrategyInput['enter_if']>): Condition[] {
  return wanted.map(({ left, is, right }) => ({
    left,
    is,
    right: right === 'price' || isRuleIndicator(right) ? right : { value: right },
  }))
}

/** The slippage of entries at the venue, in percent; a simulation has its own. */
export const slippagePercent = '0.5'

type Market = Pick<PerpMarket, 'symbol' | 'onlyIsolated'>
type MarketOf = (asset: string) => Market

/** Returns the market that a field names; throws its refusal as one of this field. */
function marketAt(marketOf: MarketOf, asset: string, field: string): Market {
  try {
    return marketOf(asset)
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'validation') throw error
    const [issue] = error.issues
    throw invalid(field, issue?.type ?? 'value_error', issue?.msg ?? error.message, issue?.ctx)
  }
}

/** Returns a strategy with bare symbols; in a market that allows isolated margin only its positions are isolated. */
export function strategyOf(input: StrategyInput, at: string, marketOf: MarketOf): StrategyConfig {
  assertFields(input, at)
  if (input.type === 'rebalance') return rebalanceOf(input, at, marketOf)
  const { symbol: asset, onlyIsolated } = marketAt(marketOf, input.asset ?? '', `${at}.asset`)
  const is_cross = (input.is_cross ?? true) && !onlyIsolated
  switch (input.type) {
    case 'dca':
      return {
        type: 'dca',
        asset,
        amount_usd: input.amount_usd ?? '0',
        ...(input.max_price !== undefined && { max_price: input.max_price }),
        ...(input.partial !== undefined && { partial: input.partial }),
      }
    case 'condition':
      return conditionOf({ ...input, is_cross }, asset)
    case 'day_trade_farming':
      return farmingOf({ ...input, is_cross }, at, asset)
  }
}

/** Throws if an input asks for cross margin where the market of its strategy has none. */
export function assertMargin(input: StrategyInput, at: string, strategy: StrategyConfig): void {
  if (input.is_cross !== true || !('is_cross' in strategy) || strategy.is_cross) return
  throw invalid(
    `${at}.is_cross`,
    'literal_error',
    `Input should be false: ${strategy.asset} allows isolated margin only`,
    { expected: 'false' },
  )
}

function rebalanceOf(
  { targets = [], band_pct = '5' }: StrategyInput,
  at: string,
  marketOf: MarketOf,
): StrategyConfig {
  const shares = targets.map(({ asset, share_pct }, n) => ({
    asset: marketAt(marketOf, asset, `${at}.targets.${n}.asset`).symbol,
    share_bps: bpsOf(share_pct),
  }))
  if (new Set(shares.map(({ asset }) => asset)).size < shares.length)
    throw invalid(`${at}.targets`, 'value_error', 'Value error: each asset stands in the targets once')
  const sum = shares.reduce((total, { share_bps }) => total + share_bps, 0)
  if (sum > 10_000)
    throw invalid(`${at}.targets`, 'value_error', 'Value error: the shares are at most 100 together')
  return { type: 'rebalance', targets: shares, band_bps: bpsOf(band_pct) }
}

type WithMargin = StrategyInput & { is_cross: boolean }

function conditionOf(input: WithMargin, asset: string): ConditionConfig {
  const { enter_if = [], exit_if, stop_atr, target_atr, side = 'long', leverage = 1, is_cross } = input
  return {
    type: 'condition',
    asset,
    side,
    order_usd: input.order_notional_usd ?? '0',
    leverage,
    is_cross,
    slippage_bps: bpsOf(input.slippage_pct ?? slippagePercent),
    enter_if: conditionsOf(enter_if),
    ...(exit_if && { exit_if: conditionsOf(exit_if) }),
    ...(stop_atr !== undefined && { stop_atr_pct: bpsOf(stop_atr) }),
    ...(target_atr !== undefined && { target_atr_pct: bpsOf(target_atr) }),
  }
}

function farmingOf(input: WithMargin, at: string, asset: string): FarmingConfig {
  const { order_notional_usd: usd, order_size: size, leverage = 1, is_cross } = input
  if ((usd === undefined) === (size === undefined))
    throw exactlyOneOf(`${at}.order_notional_usd`, `${at}.order_size`, { hasBoth: usd !== undefined })
  if (!farmingAssets.some((known) => known === asset))
    throw invalid(`${at}.asset`, 'unsupported_asset', `Day trades are made in ${farmingAssets.join(', ')}`, {
      asset,
    })
  return {
    type: 'day_trade_farming',
    asset,
    ...(usd !== undefined && { order_notional_usd: usd }),
    ...(size !== undefined && { order_size: size }),
    leverage,
    is_cross,
    slippage_bps: bpsOf(input.slippage_pct ?? slippagePercent),
    tp_is_market: input.tp_is_market ?? true,
    sl_is_market: input.sl_is_market ?? true,
  }
}

/** The candles whose closes decide. */
export const signalSpanOf = ({ type, interval }: StrategyInput): CandleSpan => {
  if (type === 'condition') return interval ?? '1h'
  return type === 'day_trade_farming' ? '15m' : '1h'
}
