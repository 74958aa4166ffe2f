import { guardsOf } from '#engines/strategy-terms/guard-config.ts'
import type { GuardsInput, StrategyInput } from '#engines/strategy-terms/strategy-schemas.ts'
import { findMarket } from '#engines/venue/records/markets.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { toMicros } from '#kernel/money/money.ts'
import { assetsOf } from '#market/strategies/decide.ts'
import type { MarketRules } from '#market/strategies/strategy.ts'
import { type Queryable, query } from '#store/query.ts'
import type { StrategyMode, StrategyVersionRow } from '#store/tables/strategies.ts'
import type { Hyperliquid, PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { StrategyTerms } from './mode-driver.ts'
import { signalSpanOf, strategyOf } from './strategy-input.ts'

/** Reads a version of a strategy as its runs and the watch need it, with the rules of its markets. */

export type TermsDeps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'perps'>
  /** The least order that the venue takes. */
  minOrderUsd: string
}
export type TermsKey = {
  strategyId: string
  version: number
  mode: StrategyMode
  /** What the account has open, which an earlier version may have opened. */
  assets?: readonly string[]
  /** Whether a market that is not traded any more is no error: what is open in the others is guarded and closed. */
  allowsDelisted?: boolean
}
export type ReadTerms = (key: TermsKey) => Promise<StrategyTerms>

export type VersionRow = Pick<
  StrategyVersionRow,
  'type' | 'config' | 'guards' | 'calendar' | 'budget_usd' | 'paper_balance_usd'
> & { user_id: string }

export const createReadTerms =
  (deps: TermsDeps): ReadTerms =>
  async (key) => {
    const [row, { markets }] = await Promise.all([findVersion(deps.db, key), deps.venue.perps()])
    return termsOf(row, key, { markets, minOrderUsd: deps.minOrderUsd })
  }

async function findVersion(db: Queryable, { strategyId, version }: TermsKey): Promise<VersionRow> {
  const [row] = await query<VersionRow>(
    db,
    `select s.user_id, v.type, v.config, v.guards, v.calendar, v.budget_usd::text, v.paper_balance_usd::text
     from strategy_version v join strategy s on s.id = v.strategy_id where v.strategy_id = $1 and v.version = $2`,
    [strategyId, version],
  )
  if (!row) throw new Error(`version ${version} of the strategy ${strategyId} is gone`)
  return row
}

/** What an account begins with: live strategies have a budget, and nothing beyond it. */
const initialMicrosOf = (
  { budget_usd, paper_balance_usd }: Pick<VersionRow, 'budget_usd' | 'paper_balance_usd'>,
  mode: StrategyMode,
): bigint => toMicros(mode === 'live' ? (budget_usd ?? '0') : paper_balance_usd)

/** Returns what an account began with by a version. */
export const readInitialMicros = async (db: Queryable, key: TermsKey): Promise<bigint> =>
  initialMicrosOf(await findVersion(db, key), key.mode)

type Venue = { markets: readonly PerpMarket[]; minOrderUsd: string }

/** Returns the terms of a version; throws `market_closed` where the venue does not trade a market of it any more. */
export function termsOf(row: VersionRow, key: TermsKey, { markets, minOrderUsd }: Venue): StrategyTerms {
  const { strategyId, version, mode, assets = [], allowsDelisted = false } = key
  if (row.type === 'prompt') throw new Error('a prompt has no terms')
  const input = { ...(row.config ?? {}), type: row.type } as StrategyInput
  const marketOf = (asset: string): PerpMarket => {
    const market = findMarket('perp', markets, asset)
    if (!market || (market.isDelisted && !allowsDelisted))
      throw new Fault('market_closed', `The venue does not trade the market ${asset} now`)
    return market
  }
  const strategy = strategyOf(input, 'config', marketOf)
  const traded = [...new Set([...assetsOf(strategy), ...assets])]
  const rules = traded.map((asset) => [asset, rulesOf(marketOf(asset), minOrderUsd)])
  const { timezone = 'UTC' } = (row.calendar ?? {}) as { timezone?: string }
  return {
    strategyId,
    userId: row.user_id,
    version,
    mode,
    config: {
      decision: { strategy, markets: Object.fromEntries(rules) },
      guards: guardsOf((row.guards ?? {}) as GuardsInput),
      budgetMicros: row.budget_usd === null ? null : toMicros(row.budget_usd),
    },
    span: signalSpanOf(input),
    timezone,
    initialMicros: initialMicrosOf(row, mode),
  }
}

/** Every asset is a perpetual, also where its purchases have no leverage, so funding counts for all. */
export const rulesOf = (market: PerpMarket, minOrderUsd: string): MarketRules => ({
  kind: 'perp',
  size_decimals: market.sizeDecimals,
  price_decimals: market.priceDecimals,
  leverage_max: market.maxLeverage,
  venue_leverage_max: market.maxLeverage,
  min_order_usd: minOrderUsd,
})
