import type { StrategyFields, StrategyInput } from '#engines/strategy-terms/strategy-schemas.ts'
import { requireKnownMarket } from '#engines/venue/records/markets.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { invalid } from '#kernel/contract/fault.ts'
import {
  fixedPointDecimals,
  fromUnits,
  mulDiv,
  rescale,
  toFixedPoint,
  toMicros,
  toUnits,
  usdDecimals,
  valueMicros,
} from '#kernel/money/money.ts'
import { candleSpanMs } from '#market/candle.ts'
import { assetsOf } from '#market/strategies/decide.ts'
import { riseBps } from '#market/strategies/entry.ts'
import { entriesPerDayMax } from '#market/strategies/farming-rule.ts'
import type { StrategyConfig } from '#market/strategies/strategy.ts'
import type { Hyperliquid, PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { assertMargin, signalSpanOf, slippagePercent, strategyOf } from './strategy-input.ts'

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
  const strategy = strategyOf(input, at, marketOf)
  assertMargin(input, at, strategy)
  const worthUsd = orderWorthOf(input, marketOf)
  if (worthUsd !== null) assertOrderable(input, { at, worthUsd, minOrderUsd, marketOf })
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

type Orderable = {
  at: string
  worthUsd: string
  minOrderUsd: string
  marketOf: (asset: string) => PerpMarket
}

/** Throws if an order would be below the minimum of the venue, once it is sized by its worst price and cut to lots. */
function assertOrderable(input: StrategyInput, { at, worthUsd, minOrderUsd, marketOf }: Orderable): void {
  const minimum = input.order_size === undefined ? leastWorth(input, minOrderUsd, marketOf) : minOrderUsd
  if (compareDecimals(worthUsd, minimum) >= 0) return
  throw invalid(
    `${at}.${sizeFieldOf(input)}`,
    'below_minimum',
    `Input should be worth at least ${minimum} USD, so that an order is worth the ${minOrderUsd} USD that the venue takes at least; it is ${worthUsd} USD`,
    { minimum, unit: 'USD', worth_usd: worthUsd },
  )
}

const centPlaces = 2

/** Returns the amount whose order is worth the minimum of the venue: the order costs its slippage, and is cut to lots. */
function leastWorth(
  { slippage_pct: percent = slippagePercent, asset = '' }: StrategyInput,
  minOrderUsd: string,
  marketOf: (asset: string) => PerpMarket,
): string {
  const { sizeDecimals, markPrice } = marketOf(asset)
  const worth = toMicros(minOrderUsd) + valueMicros(1n, sizeDecimals, markPrice, 'up')
  const micros = mulDiv(worth, 10_000n + toUnits(percent, 2) + BigInt(riseBps), 10_000n, 'up')
  return fromUnits(rescale(micros, usdDecimals, centPlaces, 'up'), centPlaces)
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
