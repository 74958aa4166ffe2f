import type { VenueActs } from '#features/venue/act.ts'
import type { Pricing } from '#features/venue/exits.ts'
import type { PlaceNeeds, Refusals } from '#features/venue/place.ts'
import type { AgentNeeds } from '#features/venue/trade.ts'
import type { Sizing } from '#features/venue/wish.ts'
import type { Policy } from '#kernel/signer.ts'
import type { TaskView } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { AccountViews } from '#upstreams/hyperliquid/account-views.ts'
import type { Grid } from '#upstreams/hyperliquid/grid.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'

/** Who keeps the exits of a holding: the venue, where it takes triggers for spot, or the gateway. */
export type TriggerKeeper = 'gateway' | 'venue'

export type SpotNeeds = {
  on: Queryable
  venue: Hyperliquid
  views: AccountViews
  chainId: string
  orderHeard: PlaceNeeds['orderHeard']
  acts: VenueActs
  pricing: Pricing & Sizing & { leastPrice(usd: string, size: string, grid: Grid): string }
  refusals: Refusals
  policy: Policy
  evmAddressOf: (userId: string) => Promise<string>
  agentLost(task: TaskView, agent: string): Promise<void>
  /** Makes a new trading key where none is good; returns before the venue has taken it. */
  renewKey(userId: string): Promise<void>
  keeper: TriggerKeeper
  limits: { minOrderUsd: string; minFundUsd: string }
} & AgentNeeds
