import { admitCancelAll } from '#features/venue/cancel-all.ts'
import { marketNamed } from '#features/venue/symbol.ts'
import type { Caller } from '#kernel/caller.ts'
import type { Admission, JsonObject, Step } from '#kernel/task.ts'
import { usdcMarkets } from './market.ts'
import type { SpotNeeds } from './needs.ts'
import { openTriggers, triggerOf } from './triggers.ts'

/** Triggers that the gateway keeps end first: an order that is cancelled at the venue may be their entry. */

export async function admitSpotCancelAll(
  deps: SpotNeeds,
  { asset }: { asset?: string },
  caller: Caller,
): Promise<Admission> {
  const [{ markets }, triggers] = await Promise.all([
    usdcMarkets(deps.venue),
    openTriggers(deps.on, caller.userId),
  ])
  const symbol = asset === undefined ? undefined : marketNamed('spot', markets, asset).symbol
  const byCoin = new Map(markets.map((market) => [market.coin, market]))
  const section = {
    kind: 'spot' as const,
    operation: 'spot_cancel_all',
    symbol,
    marketOf({ symbol: coin }: { symbol: string }) {
      const market = byCoin.get(coin)
      return market && { symbol: market.symbol, asset: market.asset }
    },
  }
  const kept = triggers
    .map(({ id, input }) => ({ id, symbol: input.symbol }))
    .filter((each) => symbol === undefined || each.symbol === symbol)
  if (kept.length === 0) return admitCancelAll(deps, section, caller)
  return admitCancelAll(deps, section, caller, {
    symbols: kept.map((each) => each.symbol),
    first: 'disarm',
    data: { triggers: kept },
  })
}

/** Each disarming is its own transaction, and repeating it changes nothing. */
export function disarmingAll({ on, watcher }: Pick<SpotNeeds, 'on' | 'watcher'>): Record<'disarm', Step> {
  return {
    async disarm(task) {
      const triggers = task.data.triggers as unknown as { id: string; symbol: string }[]
      const outcomes: JsonObject[] = []
      for (const { id, symbol } of triggers) {
        await watcher.disarm(task.userId, id)
        const status = (await triggerOf(on, task.userId, id))?.status ?? 'gone'
        const cancelled = status === 'cancelled'
        outcomes.push({
          order_id: id,
          oid: id,
          asset: symbol,
          cancelled,
          venue_status: cancelled ? 'canceled' : status,
        })
      }
      return { next: 'begin', data: { outcomes } }
    },
  }
}
