import { type HistoryInput, type HistoryQuery, historyLimitDefault } from '#engines/venue/records/history.ts'
import { findMarket } from '#engines/venue/records/markets.ts'
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
