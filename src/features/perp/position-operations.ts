import { type CancelAllDeps, cancelAllSteps } from '#engines/venue/orders/cancel-all.ts'
import { fillHistory, orderHistory } from '#engines/venue/records/history.ts'
import type { Asker, Caller } from '#kernel/contract/caller.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import type { Policy } from '#kernel/task/signer.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { admitPerpCancelAll } from './cancel-all.ts'
import type { PerpInput } from './contract.ts'
import { historyQuery } from './history-query.ts'
import type { TradeDeps } from './open.ts'
import { admitTpSl } from './tp-sl.ts'
import { type TpSlDeps, tpSlSteps } from './tp-sl-steps.ts'

type Deps = TradeDeps & CancelAllDeps & TpSlDeps & { venue: Hyperliquid; policy: Pick<Policy, 'check'> }

export function createPositionOperations(deps: Deps) {
  const { db, venue } = deps
  return {
    tpSl: taskOf({ admit: admitTpSl(deps), steps: tpSlSteps(deps) }),
    cancelAll: taskOf({
      admit: (input: PerpInput<'cancelAll'>, asker: Asker) => admitPerpCancelAll(deps, input, asker),
      steps: cancelAllSteps(deps),
    }),
    fills: async (input: PerpInput<'fills'>, { userId }: Caller) =>
      fillHistory(db, await historyQuery(venue, userId, input)),
    orderHistory: async (input: PerpInput<'fills'>, { userId }: Caller) =>
      orderHistory(db, await historyQuery(venue, userId, input)),
  }
}
