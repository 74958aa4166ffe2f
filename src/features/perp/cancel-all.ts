import { admitCancelAll, type CancelAllData, type CancelAllDeps } from '#engines/venue/orders/cancel-all.ts'
import { requireKnownMarket } from '#engines/venue/records/markets.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import type { Admission } from '#kernel/task/task.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { PerpInput } from './contract.ts'

type Deps = CancelAllDeps & { venue: Pick<Hyperliquid, 'perps'> }

export async function admitPerpCancelAll(
  deps: Deps,
  { asset }: PerpInput<'cancelAll'>,
  asker: Asker,
): Promise<Admission<CancelAllData, 'sign'>> {
  const list = await deps.venue.perps()
  const bySymbol = new Map(list.markets.map((market) => [market.symbol, market]))
  const section = {
    kind: 'perp' as const,
    operation: 'perp_cancel_all',
    symbol: asset === undefined ? undefined : requireKnownMarket('perp', list, asset).symbol,
    marketOf({ symbol }: { symbol: string }) {
      const market = bySymbol.get(symbol)
      return market && { symbol, asset: market.asset }
    },
  }
  return admitCancelAll(deps, section, asker)
}
