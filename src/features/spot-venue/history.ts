import {
  fillHistory,
  type HistoryInput,
  historyLimitDefault,
  orderHistory,
} from '#engines/venue/records/history.ts'
import { findMarket } from '#engines/venue/records/markets.ts'
import type { SpotDeps } from './deps.ts'
import { usdcMarkets } from './spot-markets.ts'

type Deps = Pick<SpotDeps, 'db' | 'venue'>

async function historyQuery(
  { venue }: Deps,
  userId: string,
  { asset, before, limit = historyLimitDefault }: HistoryInput,
) {
  const { markets } = await usdcMarkets(venue)
  const symbol = asset === undefined ? undefined : (findMarket('spot', markets, asset)?.symbol ?? asset)
  return { markets, query: { userId, kind: 'spot' as const, symbol, before, limit } }
}

export async function spotFills(deps: Deps, userId: string, input: HistoryInput) {
  const { markets, query } = await historyQuery(deps, userId, input)
  return fillHistory(deps.db, query, markets)
}

export async function spotOrderHistory(deps: Deps, userId: string, input: HistoryInput) {
  const { query } = await historyQuery(deps, userId, input)
  return orderHistory(deps.db, query)
}
