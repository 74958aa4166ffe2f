import type { StrategyFields, StrategyInput } from '#engines/strategy-terms/strategy-schemas.ts'
import { requireKnownMarket } from '#engines/venue/records/markets.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { invalid } from '#kernel/contract/fault.ts'
import {
  fixedPointDecimals,
  fromUnits,
  rescale,
  toFixedPoint,
  toMicros,
  usdDecimals,
  valueMicros,
} from '#kernel/money/money.ts'
import { candleSpanMs } from '#market/candle.ts'
import { assetsOf } from '#market/strategies/decide.ts'
import { entriesPerDayMax } from '#market/strategies/farming-rule.ts'
import type { StrategyConfig } from '#market/strategies/strategy.ts'
import type { Hyperliquid, PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { signalSpanOf, strategyOf } from './strategy-input.ts'

/** What a schedule has to know of the configuration of its strategy. */

export type StrategyFacts = {
  /** The fields that were given, with the names that the venue has for the assets. */
  fields: StrategyFields
  strategy: StrategyConfig
  assets: string[]
  /** The seconds of the candles on whose closes it acts; null if it acts at the times of its schedule. */
  spanSeconds: number | null
  /** What one order may be worth at most; null if that is whatever the strategy has. */
  orderMaxUsd: string | null
  /** The most leverage that its market allows; null if it takes none. */
  leverageMax: number | null
  /** How often it enters on one day at most; null without such a bound of its own. */
  entriesPerDayMax: number | null
}
type FactsDeps = { venue: Pick<Hyperliquid, 'perps'>; minOrderUsd: string }

/** Checks a configuration and returns its facts; `at` is the field of the request that has it. */
export async function factsOfStrategy(
  { venue, minOrderUsd }: FactsDeps,
  input: StrategyInput,
  at: string,
): Promise<StrategyFacts> {
  const list = await venue.perps()
  const marketOf = (asset: string): PerpMarket => requireKnownMarket('perp', list, asset)
  const strategy = strategyOf(input, at, (asset) => marketOf(asset).symbol)
  const worthUsd = orderWorthOf(input, marketOf)
  if (worthUsd !== null && compareDecimals(worthUsd, minOrderUsd) < 0)
    throw invalid(
      `${at}.${sizeFieldOf(input)}`,
      'below_minimum',
      `Input should be worth at least ${minOrderUsd} USD, the least order of the venue; it is ${worthUsd} USD`,
      { minimum: minOrderUsd, unit: 'USD', worth_usd: worthUsd },
    )
  const isTimed = strategy.type === 'dca' || strategy.type === 'rebalance'
  return {
    fields: namedFields(input, strategy),
    strategy,
    assets: assetsOf(strategy),
    spanSeconds: isTimed ? null : Math.floor(candleSpanMs[signalSpanOf(input)] / 1_000),
    orderMaxUsd: worthUsd !== null && input.order_size !== undefined ? withRise(worthUsd) : worthUsd,
    leverageMax: isTimed ? null : marketOf(strategy.asset).maxLeverage,
    entriesPerDayMax: strategy.type === 'day_trade_farming' ? entriesPerDayMax : null,
  }
}

const sizeFieldOf = ({ type, order_size }: StrategyInput): keyof StrategyFields => {
  if (type === 'dca') return 'amount_usd'
  return order_size === undefined ? 'order_notional_usd' : 'order_size'
}

function namedFields({ type: _type, ...fields }: StrategyInput, strategy: StrategyConfig): StrategyFields {
  if (strategy.type !== 'rebalance') return { ...fields, asset: strategy.asset }
  const targets = fields.targets?.map((target, n) => ({
    ...target,
    asset: strategy.targets[n]?.asset ?? target.asset,
  }))
  return { ...fields, ...(targets && { targets }) }
}

/** An order of a fixed size is counted with this part of its present worth, in percent, because the price moves. */
const risePercent = 125n
const withRise = (usd: string): string => fromUnits((toMicros(usd) * risePercent) / 100n, usdDecimals)

/** Returns what one order is worth now; null if no field says it. */
function orderWorthOf(
  { type, amount_usd, order_notional_usd, order_size, asset = '' }: StrategyInput,
  marketOf: (asset: string) => PerpMarket,
): string | null {
  if (type === 'rebalance') return null
  if (type === 'dca') return amount_usd ?? null
  if (order_size === undefined) return order_notional_usd ?? null
  const { sizeDecimals, markPrice } = marketOf(asset)
  const units = rescale(toFixedPoint(order_size), fixedPointDecimals, sizeDecimals)
  return fromUnits(valueMicros(units, sizeDecimals, markPrice), usdDecimals)
}
