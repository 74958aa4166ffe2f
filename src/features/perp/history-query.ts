import { type HistoryInput, type HistoryQuery, historyLimitDefault } from '#engines/venue/records/history.ts'
import { findMarket } from '#engines/venue/records/markets.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'

/** An unlisted market is queried by the given name, because it may have a history. */
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
