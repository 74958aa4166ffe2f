import { fillHistory, type HistoryInput, historyLimitDefault, orderHistory } from '#features/venue/history.ts'
import { findMarket } from '#features/venue/symbol.ts'
import { usdcMarkets } from './market.ts'
import type { SpotNeeds } from './needs.ts'

type Deps = Pick<SpotNeeds, 'on' | 'venue'>

async function pageOf(
  { venue }: Deps,
  userId: string,
  { asset, before, limit = historyLimitDefault }: HistoryInput,
) {
  const { markets } = await usdcMarkets(venue)
  const symbol = asset === undefined ? undefined : (findMarket('spot', markets, asset)?.symbol ?? asset)
  return { markets, query: { userId, kind: 'spot' as const, symbol, before, limit } }
}

export async function spotFills(deps: Deps, userId: string, input: HistoryInput) {
  const { markets, query } = await pageOf(deps, userId, input)
  return fillHistory(deps.on, query, markets)
}

export async function spotOrderHistory(deps: Deps, userId: string, input: HistoryInput) {
  const { query } = await pageOf(deps, userId, input)
  return orderHistory(deps.on, query)
}
