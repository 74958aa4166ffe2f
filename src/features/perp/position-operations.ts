import { type CancelAllDeps, cancelAllSteps } from '#features/venue/cancel-all.ts'
import { fillHistory, type HistoryInput, orderHistory } from '#features/venue/history.ts'
import type { Caller } from '#kernel/caller.ts'
import type { Policy } from '#kernel/signer.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { admitPerpCancelAll } from './cancel-all.ts'
import { pageOf } from './history.ts'
import type { TradeNeeds } from './open.ts'
import { admitTpSl, type TpSlInput } from './tp-sl.ts'
import { type TpSlDeps, tpSlSteps } from './tp-sl-steps.ts'

type Deps = TradeNeeds &
  CancelAllDeps &
  TpSlDeps & { venue: Hyperliquid; policy: Pick<Policy, 'check' | 'reserve' | 'release'> }

/** What is done with open positions and orders beside opening and closing, and what is told of past ones. */
export function positionOperations(deps: Deps) {
  const { on, venue, policy } = deps
  return {
    tpSl: {
      admit: (input: TpSlInput, caller: Caller) => admitTpSl(deps, input, caller),
      steps: tpSlSteps(deps),
      released: policy.release,
    },
    cancelAll: {
      admit: (input: { asset?: string }, caller: Caller) => admitPerpCancelAll(deps, input, caller),
      steps: cancelAllSteps(deps),
      released: policy.release,
    },
    fills: async (input: HistoryInput, { userId }: Caller) =>
      fillHistory(on, await pageOf(venue, userId, input)),
    orderHistory: async (input: HistoryInput, { userId }: Caller) =>
      orderHistory(on, await pageOf(venue, userId, input)),
  }
}
