import type { Sizing } from '#engines/venue/orders/order-checks.ts'
import type { PlaceOrderDeps, Rejections } from '#engines/venue/orders/place-order-deps.ts'
import type { Pricing } from '#engines/venue/orders/protective-orders.ts'
import type { SignedActions } from '#engines/venue/orders/signed-action.ts'
import type { AgentDeps } from '#engines/venue/orders/trade-admission.ts'
import type { Policy } from '#kernel/signer.ts'
import type { TaskView } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { AccountViews } from '#upstreams/hyperliquid/account-views.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { Grid } from '#upstreams/hyperliquid/rounding.ts'

/** Who holds the triggers of spot balances: the venue, where it supports spot triggers, or the gateway. */
export type TriggerHost = 'gateway' | 'venue'

export type SpotDeps = {
  db: Queryable
  venue: Hyperliquid
  views: AccountViews
  chainId: string
  readStreamedOrder: PlaceOrderDeps['readStreamedOrder']
  signedActions: SignedActions
  pricing: Pricing & Sizing & { minPrice(usd: string, size: string, grid: Grid): string }
  rejections: Rejections
  policy: Policy
  evmAddressOf: (userId: string) => Promise<string>
  onAgentRevoked(task: TaskView, agent: string): Promise<void>
  /** Starts the renewal of the trading key; returns before the venue has approved the new one. */
  renewKey(userId: string): Promise<void>
  triggerHost: TriggerHost
  limits: { minOrderUsd: string; minFundUsd: string }
} & AgentDeps
