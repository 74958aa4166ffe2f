import { type HistoryInput, type HistoryQuery, historyLimitDefault } from '#features/venue/history.ts'
import { findMarket } from '#features/venue/markets.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'

/** A market that is listed no more still has a history, under the name that was given. */
export async function historyQuery(
  venue: Pick<Hyperliquid, 'perps'>,
  userId: string,
  { asset, before, limit = historyLimitDefault }: HistoryInput,
): Promise<HistoryQuery> {
  const symbol =
    asset === undefined
      ? undefined
      : (findMarket('perp', (await venue.perps()).markets, asset)?.symbol ?? asset)
  return { userId, kind: 'perp', symbol, before, limit }
}
