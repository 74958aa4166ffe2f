import {
  admitCancelAll,
  type CancelAllData,
  type CancelAllStep,
  type Cancelled,
} from '#engines/venue/orders/cancel-all.ts'
import { requireKnownMarket } from '#engines/venue/records/markets.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import { addToResult } from '#kernel/task/effect-steps.ts'
import type { Admission, Step } from '#kernel/task/task.ts'
import type { SpotInput } from './contract.ts'
import type { SpotDeps } from './deps.ts'
import { usdcMarkets } from './spot-markets.ts'
import { cancelTriggers, findTrigger, isOpenTrigger, openTriggers } from './trigger-store.ts'

/** Triggers held by the gateway are cancelled first, because a cancelled order at the venue may be their entry. */

/** The data of the task; `triggers` are the cancelled triggers that the gateway holds. */
export type SpotCancelAllData = CancelAllData & { triggers?: { id: string; symbol: string }[] }
type SpotCancelAllStep = 'disarm' | CancelAllStep

export async function admitSpotCancelAll(
  deps: SpotDeps,
  { asset }: SpotInput<'cancelAll'>,
  asker: Asker,
): Promise<Admission<SpotCancelAllData, SpotCancelAllStep>> {
  const [list, triggers] = await Promise.all([usdcMarkets(deps.venue), openTriggers(deps.db, asker.userId)])
  const symbol = asset === undefined ? undefined : requireKnownMarket('spot', list, asset).symbol
  const byCoin = new Map(list.markets.map((market) => [market.coin, market]))
  const section = {
    kind: 'spot' as const,
    operation: 'spot_cancel_all',
    symbol,
    marketOf({ symbol: coin }: { symbol: string }) {
      const market = byCoin.get(coin)
      return market && { symbol: market.symbol, asset: market.asset }
    },
  }
  const triggersToCancel = triggers
    .map(({ id, input }) => ({ id, symbol: input.symbol }))
    .filter((each) => symbol === undefined || each.symbol === symbol)
  if (triggersToCancel.length === 0) return admitCancelAll(deps, section, asker)
  const symbols = triggersToCancel.map((each) => each.symbol)
  const admission = await admitCancelAll(deps, section, asker, symbols)
  return {
    ...admission,
    first: 'disarm',
    data: { ...admission.data, triggers: triggersToCancel },
    signOnAccept: false,
  }
}

/**
 * Cancels triggers together with the first action at the venue or with the task's end, so that a task that is
 * cancelled earlier has changed nothing.
 */
export function cancelAllTriggersSteps(
  { db }: Pick<SpotDeps, 'db'>,
  sign: Step<CancelAllData, CancelAllStep>,
): Record<'disarm', Step<SpotCancelAllData, SpotCancelAllStep>> {
  return {
    async disarm(task, context) {
      const { triggers = [] } = task.data
      const seen = await Promise.all(
        triggers.map(async (each) => ({
          ...each,
          status: (await findTrigger(db, task.userId, each.id))?.status ?? 'missing',
        })),
      )
      const open = seen.filter(({ status }) => isOpenTrigger(status)).map(({ id }) => id)
      const outcomes = seen.map(({ id, symbol, status }): Cancelled => {
        const cancelled = status === 'cancelled' || isOpenTrigger(status)
        return {
          order_id: id,
          oid: id,
          asset: symbol,
          cancelled,
          venue_status: cancelled ? 'canceled' : status,
        }
      })
      const signed = await sign({ ...task, data: { ...task.data, outcomes } }, context)
      return addToResult(signed, {
        data: { outcomes },
        writes: (tx) => cancelTriggers(tx, task.userId, open),
      })
    },
  }
}
